"""Subjects of one benchmark side by side: started in turns, and read unit by unit."""
