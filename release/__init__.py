"""Release perftrail: build the sdist and the wheels of every platform, and check each. `make release` starts it."""
