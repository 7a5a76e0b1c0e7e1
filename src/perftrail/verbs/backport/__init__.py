"""The parts of `backport`: what is made, measured and concluded of a change on an old revision."""
