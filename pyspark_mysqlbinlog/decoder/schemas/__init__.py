"""Table maps checked against schemas, metadata in the binlog, and types of structs."""
