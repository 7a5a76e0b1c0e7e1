"""The parts of `find`: what one search takes, tells and writes down, and what becomes of its answer."""
