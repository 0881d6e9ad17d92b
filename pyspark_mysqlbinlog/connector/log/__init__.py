"""Logs to read, a server's or files: where places lie in them, whether they are the same log."""
