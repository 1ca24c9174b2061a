"""Screen 5: what there is."""
