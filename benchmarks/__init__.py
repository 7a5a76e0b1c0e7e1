"""Benchmarks that compare perftrail with its peers and with its own goals. Each is a separate command."""
