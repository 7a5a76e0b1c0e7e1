"""The sections of a report, and its answer."""
