"""Sandboxes as a harness's own environment classes make and use them."""
