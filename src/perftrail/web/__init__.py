"""The dashboard: pages for browsers, an API for programs, and what runs right now."""
