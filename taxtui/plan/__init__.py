"""The plan of a run: plans, scenario files and the short notations of both."""
