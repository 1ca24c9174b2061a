"""Shell programs around commands: one command, a persistent shell, a connection by SSH."""
