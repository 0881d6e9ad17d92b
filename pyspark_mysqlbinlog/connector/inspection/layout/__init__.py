"""The fields of an event, byte by byte."""
