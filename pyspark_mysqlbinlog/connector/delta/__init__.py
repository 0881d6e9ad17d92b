"""Delta tables that are kept in step with MySQL tables."""
