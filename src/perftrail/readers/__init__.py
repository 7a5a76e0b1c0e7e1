"""What a benchmark printed, read as metrics."""
