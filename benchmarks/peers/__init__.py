"""Other readers of a binlog."""
