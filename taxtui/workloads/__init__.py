"""What the shipped tiers need: fixtures, and the image that holds them."""
