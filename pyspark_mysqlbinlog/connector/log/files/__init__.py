"""Binlogs in files: chains of files, and files that grow."""
