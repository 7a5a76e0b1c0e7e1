"""Word and lay out results, once for all interfaces: terminal, page, Markdown, gate and messages.

- `answer_sentence`: the answer of a search in one sentence; `answer_details`: everything else that `find` and `run`
  print.
- `tables`, `growth`, `scaling`, `failures`, `outdated`: what `show` prints. `plan`: what `check` and `init` print.
- `report`, `html_page`: the report. `site`: the static site of `publish`. `dashboard`: its pages, for `web`.
- `gate`, `gate_output`: the answer of `compare`. `trial`, `trial_files`: the result of `measure`.
- `backport`, `doctor`, `explain`, `export`, `revert`: what these commands print; `import` prints like `export`.
- `why`: the functions that are responsible for a change, in words. `flame_graph`: the difference of two profiles as a
  drawing; `profile_files`: it and files for other tools.
- `console`: events and progress. `shared_sentences`: sentences of several outputs. `output_settings`: colours, and how
  much is printed.
"""
