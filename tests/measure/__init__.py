"""Builds and starts on this machine: each once, in blocks, with what was drawn for them."""
