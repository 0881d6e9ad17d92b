"""A connection to a server: handshake, session, results and errors."""
