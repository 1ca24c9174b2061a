"""Removal of every sandbox, whatever becomes of the run: registry, watchdog, final sweep."""
