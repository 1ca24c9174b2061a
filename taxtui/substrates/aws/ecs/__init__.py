"""ECS tasks on Fargate, over ECS Exec."""
