"""Initial snapshots."""
