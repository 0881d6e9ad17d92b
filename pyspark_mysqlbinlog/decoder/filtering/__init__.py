"""Which events are captured, and what stops a stream."""
