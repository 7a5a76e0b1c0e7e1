"""The commands' workflows, which connect the core with the outside. They yield events and never print.

- `run`, `build`, `check`: build and measure a study, or show and try its plan.
- `compare`, `backport`, `explain`, `watch`: compare revisions, and measure new ones.
- `init`, `import_`, `export`, `doctor`, `resolution`: study files, samples of other tools, and the machine.
"""
