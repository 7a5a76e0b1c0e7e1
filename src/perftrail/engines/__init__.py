"""Where jobs are performed."""
