"""Options that several commands share, and the training file."""
