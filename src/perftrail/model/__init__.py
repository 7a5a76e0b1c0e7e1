"""Values that describe a study and its results: frozen, standard library only, no I/O.

- `study`, `source`, `recipe`, `sandbox`, `benchmark`, `metrics`: the tables of the study file; `field`: their keys.
- `subject`, `plan`, `target`, `expression`, `placeholders`: what is built, run and computed.
- `program`: whether a command runs a linked program, and what that means for its layout.
- `runnable_key`: everything that can affect a sample.
- `build`, `process`, `measurement`, `patch`, `reads`: results of builds, processes and invocations.
- `profile`: what each function of a program costs, and which function calls which.
- `trial`: a measurement without a study; `store_records`: searches, comparisons, listings, explanations and
  notes in the store.
- `exchange`: samples from and for other tools.
- `notation`: durations and sizes as a study writes them; `wording`: numbers, words and quotes for people.
- `json_data`: plain data, JSON of values and its schema.
"""
