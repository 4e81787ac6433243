"""What `doctor` looks at, a module each."""
