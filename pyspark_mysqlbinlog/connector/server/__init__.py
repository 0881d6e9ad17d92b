"""What is asked of a server beside its log: settings, grants, filters, information_schema."""
