"""`make bench`: how fast it is, as ratios to what the machine can do in the same minute."""
