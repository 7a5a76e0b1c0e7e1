"""How often a tool calls two equal programs different, and how often it sees a real difference."""
