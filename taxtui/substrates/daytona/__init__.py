"""Sandboxes of Daytona."""
