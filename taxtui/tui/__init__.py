"""The terminal user interface: it follows a recording and never measures."""
