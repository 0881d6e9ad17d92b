"""The snapshot of one Delta table: its record, its chunks, and tables without a key."""
