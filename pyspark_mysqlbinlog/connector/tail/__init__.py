"""The walk through the log ahead of Spark: buffer, spans, boundaries, lag."""
