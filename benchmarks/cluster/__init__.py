"""Several machines: how long builds and searches take with more of them, and what kills do."""
