"""The embedded default: bubblewrap, or plain subprocesses."""
