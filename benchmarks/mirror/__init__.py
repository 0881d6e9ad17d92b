"""Delta mirrors."""
