"""Readers of what other tools have logged: one format, one file, behind the entry point ``taxtui.importers``."""
