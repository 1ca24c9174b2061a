"""What ``taxtui check`` found: tables and plain data, and a report for CI."""
