"""PyTorch's own op and module databases as the judge of compiled functions:
`python -m tests.python.sweep --help`."""
