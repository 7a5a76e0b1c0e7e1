"""The parts of `show`: what was measured, and what the figures along an axis or the history say."""
