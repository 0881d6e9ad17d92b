"""Delta tables, by delta-rs or by Delta for Spark."""
