"""Needs of the shipped tiers: fixtures, and the image that holds them."""
