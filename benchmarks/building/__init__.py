"""The time to build every revision of a history: perftrail compared with clean builds."""
