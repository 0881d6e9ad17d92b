"""Effects of statements on tables: tokens, CREATE, ALTER, kinds of statements."""
