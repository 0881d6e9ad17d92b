"""The options of the data source: name, type, default, check and documentation in one model.

Spark passes a mapping of texts. `Options.parse` is the only way from it to values. Names are
case-insensitive; an unknown name is answered with the most similar one. Every problem becomes one
OptionError, so no other module sees a text, or an error of pydantic's, which would print the given
value, even a secret.
"""

from __future__ import annotations

from typing import Literal
from zlib import crc32

from pydantic import PrivateAttr
from pydantic.alias_generators import to_camel

from pyspark_mysqlbinlog.connector.options.fields import OptionFields
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.connector.options.transforms import parse_transforms, transforms_hash
from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    Latest,
    Place,
    Snapshot,
)
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings

__all__ = ["FIELDS", "Options", "field_info"]


class Options(OptionFields):
    """The options of one query. Frozen and picklable; its repr shows no secret.

    Durations are in seconds, sizes in bytes. Use `parse`: the constructor takes texts by their
    Spark names and raises pydantic's errors.
    """

    # Which of the servers that `host` names is read; empty if any.
    _server_uuid: str = PrivateAttr("")

    # Only the server shows whether table names are case-sensitive, so the methods take this as an
    # argument. Files do not show it.

    @property
    def files_are_case_sensitive(self) -> bool:
        """Whether the server that wrote the files at `path` distinguishes table names by case."""
        return self.lower_case_table_names != "1"

    def table_filter(self, case_sensitive: bool) -> TableFilter:
        """Parse `tables` and `excludeTables`; see TableFilter.parse."""
        return TableFilter.parse(self.tables, self.exclude_tables, case_sensitive)

    @property
    def table_filter_hash(self) -> str:
        """Return a short text that differs if other tables are captured."""
        return self._filter_hash(self.path is not None)

    @property
    def table_filter_hashes(self) -> tuple[str, str]:
        """Return the texts of queries of a server and of files that capture the same tables.

        A checkpoint's record of the tables is complete only for a server.
        """
        return self._filter_hash(False), self._filter_hash(True)

    def _filter_hash(self, of_files: bool) -> str:
        given = (self.tables, self.exclude_tables, *(["path"] if of_files else []))
        return f"{crc32(repr(given).encode('utf-8', 'surrogatepass')):08x}"

    def column_filter(self, case_sensitive: bool) -> ColumnFilter:
        """Parse `excludeColumns`; see ColumnFilter.parse."""
        return ColumnFilter.parse(self.exclude_columns, case_sensitive)

    def transforms(self, case_sensitive: bool) -> Transforms | None:
        """Parse `maskColumns` and `rowFilter`; None if there are none. See `parse_transforms`."""
        return parse_transforms(self.mask_columns, self._secret, self.row_filter, case_sensitive)

    @property
    def transforms_hash(self) -> str:
        """Return a short text that differs for other masks, secrets or conditions; may be empty."""
        return transforms_hash(self.mask_columns, self._secret, self.row_filter)

    @property
    def has_transforms(self) -> bool:
        """Whether columns are masked or rows filtered."""
        return self.mask_columns is not None or self.row_filter is not None

    @property
    def _secret(self) -> str | None:
        return None if self.mask_secret is None else self.mask_secret.get_secret_value()

    @property
    def payload_kind(self) -> Literal["json", "struct", "variant"]:
        """Return `payload`, or its default for these tables."""
        if self.payload is not None:
            return self.payload
        tables = self.table_filter(True)
        return "struct" if tables.is_literal and len(tables.literals) == 1 else "json"

    @property
    def rescues(self) -> bool:
        """Whether values that a struct can't contain are returned in `_rescued_data`."""
        return self.payload_kind == "struct" and self.schema_evolution_mode in (
            "addNewColumns",
            "rescue",
        )

    @property
    def struct_options(self) -> StructOptions:
        """Return the representation of types for which a struct has more than one."""
        return StructOptions(
            time_type=self.time_type,
            json_type=self.json_type,
            zero_dates=self.zero_dates,
            tiny_int1_is_boolean=self.tiny_int1_is_boolean,
        )

    @property
    def starts_with_snapshot(self) -> bool:
        """Whether a query without a checkpoint begins with a snapshot of its tables."""
        return isinstance(self.starting_offset, Snapshot)

    def conditions(self, case_sensitive: bool) -> dict[Table, str]:
        """Return `snapshotWhere` by (database, table), folded as the server compares names."""
        found: dict[Table, str] = {}
        folded = table_folding(case_sensitive)
        for name, condition in (self.snapshot_where or {}).items():
            literals = TableFilter.parse(name, None, case_sensitive).literals
            if len(literals) != 1:
                raise OptionError(
                    f"option snapshotWhere: expected the name of one table, database.table, found"
                    f" {name!r}"
                )
            table = folded(literals[0])
            if table in found:
                raise OptionError(
                    f"option snapshotWhere: expected one condition for {'.'.join(table)}, found two"
                )
            found[table] = condition
        return found

    def reload_filter(self, case_sensitive: bool) -> TableFilter:
        """Return the tables of `reload`; without that option, none."""
        tables = "" if self.reload is None else self.reload[1]
        return TableFilter.parse(tables, self.exclude_tables, case_sensitive)

    def place_to_start(self, *, streaming: bool) -> Place:
        """Return `startingOffset`, or its default for this kind of read."""
        if self.starting_offset is not None:
            return self.starting_offset
        return Latest() if streaming and self.path is None else Earliest()

    @property
    def can_fail_over(self) -> bool:
        """Whether another server may continue if the one that is read is lost."""
        return self.failover or len(self.host or ()) > 1

    def bound_to(self, server_uuid: str) -> Options:
        """Return these options for one of the servers that may be read."""
        if not self.can_fail_over or server_uuid == self._server_uuid:
            return self
        bound = self.model_copy()
        bound._server_uuid = server_uuid
        return bound

    def for_files(self, *, case_sensitive: bool) -> Options:
        """Return these options with the letter case that a checkpoint records for its files.

        case_sensitive : whether the server that wrote them distinguishes table names by case.
        """
        if self.path is None or case_sensitive or not self.files_are_case_sensitive:
            return self
        return self.model_copy(update={"lower_case_table_names": "1"})

    def server_settings(self) -> ServerSettings:
        """Return how to connect to the server; OptionError if these options are for files."""
        if self.host is None or self.user is None:
            raise OptionError("option host is missing: there is no server to connect to")
        (host, port), *others = [(name, port or self.port) for name, port in self.host]
        if self.failover and not others:
            # Another server may answer there the next time.
            others = [(host, port)]
        return ServerSettings(
            host=host,
            port=port,
            others=tuple(others),
            server_uuid=self._server_uuid,
            user=self.user,
            password="" if self.password is None else self.password.get_secret_value(),
            ssl_mode=self.ssl_mode,
            ssl_ca=self.ssl_ca,
            ssl_cert=self.ssl_cert,
            ssl_key=self.ssl_key,
            connect_timeout=self.connect_timeout,
            heartbeat_interval=self.heartbeat_interval,
            server_ids=self.server_id,
        )


# Spark's name of each option -> its field.
FIELDS = {to_camel(name): field for name, field in Options.model_fields.items()}


def field_info(name: str, what: str) -> str:
    """Return an entry of an option's definition that is not pydantic's."""
    extra = FIELDS[name].json_schema_extra
    return str(extra[what]) if isinstance(extra, dict) else ""
