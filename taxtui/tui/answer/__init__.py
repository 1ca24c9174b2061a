"""The answer on screens: which place is cheapest for which work, as a table, and what a difference consists of."""
