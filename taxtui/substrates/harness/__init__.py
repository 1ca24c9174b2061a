"""Sandboxes made by harnesses: SWE-ReX, inspect_ai, Harbor."""
