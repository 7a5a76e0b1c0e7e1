"""Content of the dashboard, read from the store; builds and measures nothing."""
