"""The face in a browser: pages, an API for programs, and what happens right now."""
