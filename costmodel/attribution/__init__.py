"""Attribution: the same simulated run without each cause of sandbox time."""
