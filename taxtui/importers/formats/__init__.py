"""Readers, a file for each format."""
