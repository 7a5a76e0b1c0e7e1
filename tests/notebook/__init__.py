"""Notebooks: tables, charts, and the example of the docs."""
