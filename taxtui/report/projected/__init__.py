"""What ``taxtui project`` and ``taxtui compare`` print: one module per format, each from the same projections."""
