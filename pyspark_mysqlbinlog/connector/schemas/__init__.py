"""Table schemas: the baseline, following DDL, the struct's schema, evolution."""
