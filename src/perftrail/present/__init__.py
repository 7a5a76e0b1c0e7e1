"""Word and lay out results, once for all interfaces: terminal, page, Markdown, gate and messages.

- `sentence`: the answer of a search in one sentence; `finding`: everything else that `find` and `run` print.
- `tables`, `growth`, `scaling`, `failures`, `validity`: what `show` prints. `plan`: what `check` and `init` print.
- `report`, `html_page`: the report. `dashboard`: snapshots of it for `web`.
- `gate`, `gate_output`: the answer of `compare`. `trial`, `trial_files`: the result of `measure`.
- `backport`, `explain`: the results of these commands. `machine`: the findings of `doctor`.
- `exported`: what `export` and `import` print.
- `console`, `speech`, `terminal`: progress, and how text is printed.
"""
