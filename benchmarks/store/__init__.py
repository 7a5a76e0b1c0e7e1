"""How fast a store takes and gives samples, what room one needs, and that many writers lose nothing."""
