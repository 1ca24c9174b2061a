"""The only code that measures: trials, arrivals, the engine on this machine, and the watchdog behind it."""
