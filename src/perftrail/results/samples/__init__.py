"""Samples that other tools took, as what a study holds: which files, arranged how, and seen as a view."""
