"""The speed and size of a store, and a check that parallel writers lose nothing."""
