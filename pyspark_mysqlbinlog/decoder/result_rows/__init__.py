"""Rows of a SELECT as row images: what the log would hold of them."""
