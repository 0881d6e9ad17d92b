"""Spark's checkpoint of a mirror's query: its files, offsets and recorded targets."""
