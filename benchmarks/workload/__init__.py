"""The rows and the binlog that are read."""
