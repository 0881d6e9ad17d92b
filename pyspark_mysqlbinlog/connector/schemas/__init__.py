"""What the tables look like: the baseline, DDL followed, the struct's schema, evolution."""
