"""What would help, and whether it is so: the real tick, run on copies of a world as it was."""
