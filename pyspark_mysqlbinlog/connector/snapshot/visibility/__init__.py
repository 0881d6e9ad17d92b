"""Watermarks, and the check that a SELECT sees everything before one."""
