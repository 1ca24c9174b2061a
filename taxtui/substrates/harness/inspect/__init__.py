"""Sandboxes through the environments of inspect_ai."""
