"""The output of ``taxtui compare``: a table, plain data, and JUnit XML."""
