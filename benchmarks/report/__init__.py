"""The time to write a report of a long history, and to open it in a browser."""
