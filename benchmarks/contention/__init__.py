"""The causes that `perftrail show` reports for small programs with a known limit."""
