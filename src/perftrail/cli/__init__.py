"""The command line: the only part that prints and the only one that turns an error into an exit code."""
