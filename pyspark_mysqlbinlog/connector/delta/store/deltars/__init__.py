"""Delta tables written by delta-rs in this process."""
