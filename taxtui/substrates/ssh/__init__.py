"""A bare host over OpenSSH."""
