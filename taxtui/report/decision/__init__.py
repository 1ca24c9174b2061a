"""The output of ``taxtui decide``: one page for people, and the same as data for programs."""
