"""Metrics of streams and mirrors: one model of their values, and what shows it."""
