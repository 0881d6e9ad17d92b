"""The parts of a stream's reader: offsets, tail, snapshot, gaps, failover and tasks."""
