"""Linux containers by systemd-nspawn."""
