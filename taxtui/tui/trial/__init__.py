"""One trial of a recording, in full: what happened when, what went wrong, and which trials took longest."""
