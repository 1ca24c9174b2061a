"""Sandboxes through SWE-ReX's deployments."""
