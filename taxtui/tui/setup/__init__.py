"""Screen 1: the form of a measurement."""
