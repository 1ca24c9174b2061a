"""Pieces that screens are made of, grouped by panel."""
