"""GTIDs of a binlog: which are executed at a position, and where another server has the next."""
