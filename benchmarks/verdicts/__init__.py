"""How often a tool reports a difference of two equal programs, and how often it finds a real difference."""
