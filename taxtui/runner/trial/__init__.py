"""One trial, with all timing."""
