"""Screen 3: the measured tables."""
