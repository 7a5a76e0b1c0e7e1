"""The cost of the sandbox for an invocation, and its effect on measured values."""
