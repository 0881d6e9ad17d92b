"""A binlog in numbers: totals, charts and the report."""
