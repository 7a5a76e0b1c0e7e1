"""How long a report of a long history takes to write, and to open in a browser."""
