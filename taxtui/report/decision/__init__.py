"""The output of ``taxtui decide``: a page for people and plain data for programs."""
