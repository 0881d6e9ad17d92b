"""What a statement does to which table: tokens, CREATE, ALTER, kinds of statements."""
