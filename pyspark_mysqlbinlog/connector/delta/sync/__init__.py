"""Applies batches to one table of a mirror."""
