"""How a batch becomes tasks, and what a task reads."""
