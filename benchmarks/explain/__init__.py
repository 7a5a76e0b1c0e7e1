"""Whether `explain` names the right function: changes planted in programs of several files and languages.

``python -m benchmarks.explain`` runs all, and prints a table in Markdown.
"""
