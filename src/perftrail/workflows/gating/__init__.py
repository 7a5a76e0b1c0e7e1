"""Comparing two revisions: which figures, measured how, read when."""
