"""The figures of a page: one module each."""
