"""One table of a mirror, batch by batch."""
