"""Reads and writes Delta tables, with delta-rs or Delta for Spark."""
