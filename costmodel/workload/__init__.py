"""The workload of a cell: its trials as attempts of the requested length, think time and concurrency."""
