"""The content of ``taxtui report``: exact samples of each cell, their percentiles, and the tables made of them."""
