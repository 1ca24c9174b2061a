"""The state of a run from a recording, for Live, replay and summaries."""
