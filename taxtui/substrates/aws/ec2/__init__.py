"""EC2 instances, over SSH."""
