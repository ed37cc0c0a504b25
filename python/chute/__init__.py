"""Python side of chute: the executable does the work."""
