"""The ranking of substrates by workload: its order, tables and plain data."""
