"""How often the gate fails a branch that changed nothing, and one that is slower."""
