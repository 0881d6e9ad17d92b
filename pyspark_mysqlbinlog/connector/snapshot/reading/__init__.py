"""Reading chunks as rows."""
