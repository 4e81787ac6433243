"""Training that every task shares: flags, strategy, optimizer, loop."""
