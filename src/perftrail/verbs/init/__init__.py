"""Write a first study of a program.

- `start`, `tree`: examine a directory and its files.
- `systems`, `draft`, `ranges`: choose the build, the benchmark and the revisions.
- `writing`: write the study file.
"""
