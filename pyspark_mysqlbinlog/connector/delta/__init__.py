"""Delta tables that are kept in sync with MySQL tables."""
