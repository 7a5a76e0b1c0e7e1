"""A first study of a program: what is there to see, and the file that is written of it."""
