"""Delta tables written by Delta's jars in the Spark session."""
