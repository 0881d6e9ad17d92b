"""The tables and chunks to read next."""
