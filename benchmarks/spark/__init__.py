"""Reads by Spark, of this project and of prepared batches."""
