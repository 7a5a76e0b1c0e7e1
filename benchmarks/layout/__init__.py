"""How often commits that change only the layout are reported as slower or faster, and how often changes are found."""
