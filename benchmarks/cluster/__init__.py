"""Several machines: the time of builds and searches with more of them, and the effect of killed workers."""
