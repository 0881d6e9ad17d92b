"""Contents of events: table maps, heads of rows events, field types, transactions."""
