"""Making every subject of a history: perftrail's way against deleting, checking out and building each."""
