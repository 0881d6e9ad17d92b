"""A binlog for people: its events as text, as JSON, byte by byte, and in numbers."""
