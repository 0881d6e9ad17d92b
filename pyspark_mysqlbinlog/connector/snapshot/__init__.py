"""The initial snapshot: existing rows, read in chunks next to the binlog."""
