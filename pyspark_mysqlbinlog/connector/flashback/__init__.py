"""Undoes row changes: SQL statements that restore the rows as they were before a window."""
