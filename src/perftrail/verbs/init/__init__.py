"""Write a first study of a program.

- `start`: examine a directory, choose the range of revisions, and write the study file.
- `draft`: the examined files, and the chosen source, build and benchmark.
- `systems`: detect build systems, and choose build and benchmark.
"""
