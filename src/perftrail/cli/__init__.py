"""The command line: the only package that prints, and that turns errors into exit codes."""
