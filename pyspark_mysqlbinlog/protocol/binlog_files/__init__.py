"""Binlogs as files: names, locations, compression, and their bytes."""
