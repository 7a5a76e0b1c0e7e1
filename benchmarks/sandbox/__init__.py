"""What the sandbox costs an invocation, and whether it changes the figures of what runs in it."""
