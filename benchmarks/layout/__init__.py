"""How often commits that change only the layout are called slower or faster, and how often a change is seen."""
