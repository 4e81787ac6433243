"""The command `etcmodel`: all programs of the package under one name."""
