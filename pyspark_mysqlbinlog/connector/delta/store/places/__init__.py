"""Where Delta tables are: at paths or URIs, or by names in a catalog."""
