"""User-mode Linux: a kernel of its own for each sandbox, as a program of this machine."""
