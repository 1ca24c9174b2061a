"""What ``taxtui compare --fail-above`` found: tables and plain data, and a report for CI."""
