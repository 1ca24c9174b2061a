"""Parts that adapters share: framed shell, child process, blocking pool, kill, sessions."""
