"""What EC2 and ECS share: the connection and its errors."""
