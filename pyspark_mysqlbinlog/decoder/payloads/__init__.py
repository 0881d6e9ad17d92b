"""Builders from row images to one Arrow column: json, struct or variant."""
