"""Reading the binlog ahead of Spark: buffer, spans, boundaries, lag."""
