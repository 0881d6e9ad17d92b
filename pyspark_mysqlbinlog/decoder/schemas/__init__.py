"""Whether a table map fits a schema, what metadata in the log tells, types of structs."""
