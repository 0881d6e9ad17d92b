"""Logs to read, a server's or files: their positions, their order and their identity."""
