"""Shared options of commands, and the training file."""
