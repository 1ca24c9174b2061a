"""Parts that adapters share: framed shell, sessions, child process, blocking pool, kill, removal, labels, back-off."""
