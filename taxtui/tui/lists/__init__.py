"""Lists that screens are made of."""
