"""Containers of a Docker daemon, over its HTTP API."""
