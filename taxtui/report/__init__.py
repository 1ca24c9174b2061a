"""Tables and figures for people and for programs: one file per format."""
