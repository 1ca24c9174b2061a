"""Recordings: from the bytes of a file to trials with their times."""
