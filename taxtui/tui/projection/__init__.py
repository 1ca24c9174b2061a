"""Screen 4: what it will cost."""
