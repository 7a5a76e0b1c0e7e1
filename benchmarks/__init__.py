"""perftrail against its peers and against its own promises, each a command of its own."""
