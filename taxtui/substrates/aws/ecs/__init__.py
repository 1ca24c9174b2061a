"""Sandboxes as ECS tasks on Fargate."""
