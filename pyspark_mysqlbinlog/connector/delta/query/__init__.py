"""One streaming query of a mirror: its checkpoint, its batches, its progress."""
