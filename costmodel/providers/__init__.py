"""Unmeasured providers: published start-up times, limits and prices around measured commands."""
