"""The answer, as people and programs read it: its table, its fields, and which rows of a recording it is about."""
