"""The command ``pyspark-mysqlbinlog``."""
