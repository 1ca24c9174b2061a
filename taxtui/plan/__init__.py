"""What a run will do: plans, scenario files and the short notations of both."""
