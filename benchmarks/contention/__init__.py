"""What `perftrail show` says limits small programs of which that is known."""
