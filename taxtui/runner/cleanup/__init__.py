"""Removal of every sandbox, however the run ends: registry, watchdog, final sweep."""
