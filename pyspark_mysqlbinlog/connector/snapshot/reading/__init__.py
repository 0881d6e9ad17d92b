"""Chunks as rows."""
