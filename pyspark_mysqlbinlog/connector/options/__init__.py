"""Every option, how its text is read, and which tables and columns are wanted."""
