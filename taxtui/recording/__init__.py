"""The recording: its events and frames, its writer and its streaming reader."""
