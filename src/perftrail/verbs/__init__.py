"""The verbs: the only place where the edges meet the core. Workflows yield events and never print."""
