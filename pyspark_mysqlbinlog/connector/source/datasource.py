"""The data source `mysqlbinlog`: the class that Spark looks up, without heavy imports.

Spark imports this module at the first look-up of any data source in any session. So its imports at
the top are only modules that Spark has loaded anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from pyspark_mysqlbinlog.connector.options.model import Options

__all__ = ["MySQLBinlogDataSource"]


class MySQLBinlogDataSource(DataSource):
    """Committed row changes of a MySQL server, in commit order.

    Options and columns are documented in docs/reference (options, output-schema).

    Examples
    --------
    >>> changes = (
    ...     spark.readStream.format("mysqlbinlog")
    ...     .option("host", "127.0.0.1").option("user", "replicator").option("password", "secret")
    ...     .option("tables", "shop.*")
    ...     .load()
    ... )  # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(…)``."""
        return "mysqlbinlog"

    def schema(self) -> StructType:
        """Return the columns; the first place where invalid options are reported.

        For payload=struct, reads the tables from the server, or the files for their DDL.
        """
        from pyspark.sql.types import StringType, VariantType

        from pyspark_mysqlbinlog.connector.source.schema import output_schema

        options = self._parsed()
        match options.payload_kind:
            case "struct":
                from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type

                return output_schema(read_payload_type(options), rescued=options.rescues)
            case "variant":
                return output_schema(VariantType())
            case "json":
                return output_schema(StringType())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        from pyspark_mysqlbinlog.connector.options.checks import check_batch
        from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
        from pyspark_mysqlbinlog.connector.source.schema import check_schema

        options = self._parsed()
        check_batch(options)
        check_schema(schema, options.payload_kind, rescued=options.rescues)
        return MySQLBinlogReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a streaming read, of a server only.

        Raises none of this package's errors: the reader does, see `FailingStreamReader`.
        """
        from pyspark_mysqlbinlog.errors import MySQLBinlogError

        try:
            return self._stream_reader(schema)
        except MySQLBinlogError as error:
            from pyspark_mysqlbinlog.connector.source.failing_stream_reader import (
                FailingStreamReader,
            )

            return FailingStreamReader(error)

    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_mysqlbinlog.connector.options.checks import check_stream
        from pyspark_mysqlbinlog.connector.options.parse import parse_options
        from pyspark_mysqlbinlog.connector.ranges.handoff import HANDOFF_OPTION, BatchHandoff
        from pyspark_mysqlbinlog.connector.source.arrow_ipc import (
            IPC_ROWS,
            SLIM_IPC_ROWS,
            check_json,
        )
        from pyspark_mysqlbinlog.connector.source.schema import check_schema
        from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

        is_packed = schema in {IPC_ROWS, SLIM_IPC_ROWS}
        # Spark passes the names in lower case.
        given = dict(self.options)
        folder = given.pop(HANDOFF_OPTION, None) if is_packed else None
        options = parse_options(given)
        check_stream(options)
        if is_packed:
            handoff = None if folder is None else BatchHandoff(folder)
            return MySQLBinlogStreamReader(
                options, check_json(options), packed=schema, handoff=handoff
            )
        check_schema(schema, options.payload_kind, rescued=options.rescues)
        return MySQLBinlogStreamReader(options, schema)

    def _parsed(self) -> Options:
        from pyspark_mysqlbinlog.connector.options.parse import parse_options

        return parse_options(self.options)
