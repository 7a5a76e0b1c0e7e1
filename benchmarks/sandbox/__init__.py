"""What the sandbox costs an invocation, and whether it changes the values of what runs in it."""
