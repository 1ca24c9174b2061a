"""Project what recorded trajectories cost at any scale. Independent of taxtui: standard library and msgspec only."""
