"""What ``taxtui decide`` writes: one page for people, the same as data for programs."""
