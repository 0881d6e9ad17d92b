"""Masks of column values, and conditions that rows must meet, before a row leaves the decoder."""
