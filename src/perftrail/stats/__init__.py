"""What the numbers say: pure functions of arrays, with the assumption behind each figure."""
