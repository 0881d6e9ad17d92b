"""Splitting a batch into tasks, and reading a task's range."""
