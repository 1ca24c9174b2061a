"""Sandboxes through the environments of Harbor."""
