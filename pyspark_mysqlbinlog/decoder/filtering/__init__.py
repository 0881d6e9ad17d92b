"""Which events are wanted, and what stops a stream."""
