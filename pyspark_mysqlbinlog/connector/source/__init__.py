"""Spark's DataSource API."""
