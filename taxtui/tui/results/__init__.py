"""Screen 3: what was measured."""
