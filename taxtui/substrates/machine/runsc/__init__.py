"""gVisor without a daemon."""
