"""What is stored, looked up and compared."""
