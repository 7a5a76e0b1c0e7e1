"""The times of the dashboard's pages with a full store."""
