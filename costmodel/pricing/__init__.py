"""Price sheets: how billed time and dollars follow from a sandbox's life. ``data`` has the shipped sheets."""
