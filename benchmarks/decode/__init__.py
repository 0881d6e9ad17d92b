"""Reads and decoding without Spark."""
