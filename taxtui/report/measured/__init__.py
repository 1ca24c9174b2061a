"""What ``taxtui report`` prints: exact samples of each cell, their percentiles, and the tables made of them."""
