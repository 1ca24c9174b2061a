"""The streaming fold of a recording, which Live, replay and summaries read."""
