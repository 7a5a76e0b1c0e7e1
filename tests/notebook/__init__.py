"""Notebooks: tables, figures, and the example of the docs."""
