"""CREATE TABLE: columns, their types, and keys."""
