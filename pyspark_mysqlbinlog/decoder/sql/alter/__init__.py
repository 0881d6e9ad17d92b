"""ALTER TABLE: its clauses, and their effect on the columns."""
