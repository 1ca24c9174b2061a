"""The content of ``taxtui report``: samples of each cell, their statistics, and tables."""
