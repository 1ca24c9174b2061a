"""The numbered screens."""
