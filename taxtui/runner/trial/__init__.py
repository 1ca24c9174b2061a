"""One trial and its clock: the only room that times."""
