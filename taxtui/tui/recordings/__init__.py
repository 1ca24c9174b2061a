"""Screen 5: the recordings of this machine."""
