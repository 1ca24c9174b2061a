"""Sandboxes as EC2 instances."""
