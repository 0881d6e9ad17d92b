"""The server or files that a stream reads, and the parts that depend on the options for it.

With several servers in `host`, the options are bound to one of them at a time, and all of this is
made again when another one continues.
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.sub_batches import max_snapshot_sub_batches
from pyspark_mysqlbinlog.connector.source.arrow_ipc import SLIM_IPC_ROWS
from pyspark_mysqlbinlog.connector.source.file_snapshot import FileSnapshot
from pyspark_mysqlbinlog.connector.source.stream.files import StreamFiles
from pyspark_mysqlbinlog.connector.source.stream.gaps import StreamGaps
from pyspark_mysqlbinlog.connector.source.stream.offsets import StreamOffsets
from pyspark_mysqlbinlog.connector.source.stream.run_end import RunEnd
from pyspark_mysqlbinlog.connector.source.stream.server import StreamServer
from pyspark_mysqlbinlog.connector.source.stream.snapshot import StreamSnapshot

__all__ = ["StreamBinding"]


class StreamBinding:
    """The current server of a stream, or its files.

    Attributes
    ----------
    options : bound to the server.
    unbound : the options of the query.
    packing : the kind of IPC messages that a mirror gets; None for other streams.
    run_end : is determined again when another server is bound.
    gaps : of a server alone.
    """

    server: StreamServer | StreamFiles
    snapshot: StreamSnapshot | FileSnapshot
    gaps: StreamGaps

    def __init__(self, options: Options, packing: StructType | None) -> None:
        self.unbound = options
        self.packing = packing
        self.run_end = RunEnd()
        self._use(options)

    def bind(self, offset: Offset) -> None:
        """Bind the options to an offset: to its server if there are several, or to its letter case.

        The letter case is that of files: a server is asked.
        """
        files = self.options.for_files(case_sensitive=not offset.case_insensitive)
        if files is not self.options:
            self._use(files)
        options = self.options.bound_to(offset.server_uuid)
        if options is not self.options:
            self._use(options)
            self.run_end.forget()

    @property
    def reloads_after_gap(self) -> bool:
        """Whether all tables are reloaded where changes of them are lost: by a mirror, always."""
        return self.packing is not None or self.options.reload_after_ddl

    def _use(self, options: Options) -> None:
        self.options = options
        if options.path is not None:
            self.server, self.snapshot = StreamFiles(options), FileSnapshot()
            self.offsets = StreamOffsets(options, self.server)
            return
        self.server = StreamServer(options)
        self.offsets = StreamOffsets(options, self.server)
        self.gaps = StreamGaps(options, self.server, reloads=self.reloads_after_gap)
        self.snapshot = StreamSnapshot(
            options,
            in_packets=self.packing is not None,
            # With change logs such a batch is applied as a whole.
            max_sub_batches=self._max_snapshot_sub_batches,
            is_case_sensitive=self.server.is_case_sensitive,
            history_of=self.offsets.history,
        )

    def _max_snapshot_sub_batches(self) -> int:
        return max_snapshot_sub_batches() if self.packing == SLIM_IPC_ROWS else 1
