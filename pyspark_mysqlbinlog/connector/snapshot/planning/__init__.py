"""Which tables and chunks are read next."""
