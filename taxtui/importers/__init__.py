"""Recordings from the logs of other tools. Readers are entry points ``taxtui.importers``."""
