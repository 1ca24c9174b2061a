"""Screen 2: a run as it happens, or played back."""
