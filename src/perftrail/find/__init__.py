"""Find the revisions that changed a metric, or that broke a program.

- `find`, `loop`: run a search: ask it, build, measure, and record each step.
- `answer`: what a search is asked and what it answers, with its JSON.
- `sampler`: sample revisions.
- `inside`, `other_metrics`: search inside merges, and list other metrics that changed.
- `priors`, `journal`, `step_record`: prior weights, costs and recorded steps.
"""
