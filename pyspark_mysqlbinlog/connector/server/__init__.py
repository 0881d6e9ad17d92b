"""Queries of a server other than its binlog: settings, grants, filters, information_schema."""
