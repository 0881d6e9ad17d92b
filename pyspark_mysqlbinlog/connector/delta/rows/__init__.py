"""Changes as Arrow tables; imports nothing else of the mirror."""
