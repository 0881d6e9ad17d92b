"""Compares Delta tables with the MySQL tables that they mirror."""
