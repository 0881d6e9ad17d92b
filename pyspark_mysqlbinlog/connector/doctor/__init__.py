"""Whether a server and a lake are ready for a stream or a mirror, and what to do where not."""
