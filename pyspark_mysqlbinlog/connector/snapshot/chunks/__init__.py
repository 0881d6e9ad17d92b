"""Keys, chunk bounds, conditions and statistics of tables."""
