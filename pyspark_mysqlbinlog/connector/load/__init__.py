"""The first load: the rows that tables have already, read in chunks by key beside the log."""
