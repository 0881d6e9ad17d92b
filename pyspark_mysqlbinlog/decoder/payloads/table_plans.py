"""The plans of the tables in a log, each for the schema that is valid at a rows event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.plan import RowPlan
from pyspark_mysqlbinlog.decoder.payloads.positional import positional_plan
from pyspark_mysqlbinlog.decoder.schemas.metadata_check import check_metadata
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import usable_schema
from pyspark_mysqlbinlog.decoder.schemas.unknown_schema import unknown_schema
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["SchemaLookup", "TablePlans"]


class SchemaLookup(Protocol):
    """Finds the schema of a table at a position."""

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        """Return the schema for an event that starts at `pos`; None if it is unknown.

        Called once per rows event. It must return the same object for the same version, so that
        comparing is cheap.
        """

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        """Return why `at` gives None, as part of a sentence; empty if nothing is known about it."""

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        """Whether `at` gives a schema at a later position, or the table is dropped there."""

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        """Return the range of this file in which `at` gives the same as at `pos`.

        From the first position up to the second; None: to the end of the file.
        """


class TablePlans:
    """Plans by table id; see `Decoder` for the parameters."""

    def __init__(
        self,
        schemas: SchemaLookup,
        excluded: Callable[[str, str, str], bool] | None = None,
        *,
        transforms: Transforms | None = None,
        positional: bool = False,
    ) -> None:
        self._schemas = schemas
        self._excluded = excluded
        self._transforms = transforms
        self._positional = positional
        # With the known schema at the time the plan was made.
        self._plans: dict[int, tuple[RowPlan, TableSchema | None]] = {}

    def plan(self, event: Event, table_map: TableMap) -> RowPlan:
        """Return the plan of a table map for the schema valid at a rows event; made if new."""
        known = self._schemas.at(event.file, event.start, table_map.database, table_map.table)
        plan, planned_for = self._plans.get(table_map.table_id, (None, None))
        if (
            plan is None
            or plan.table_map is not table_map
            or (planned_for is not known and planned_for != known)
        ):
            # Metadata in the binlog itself (8.0, MariaDB) describes exactly this event.
            is_mariadb = OPERATIONS[event.type][1] == 1  # it never writes rows events v2
            if known is not None:
                check_metadata(table_map, known, is_mariadb=is_mariadb)
            schema = usable_schema(table_map, known, is_mariadb=is_mariadb) or known
            if schema is None:
                if not self._positional:
                    place = (event.file, event.start, table_map.database, table_map.table)
                    raise unknown_schema(
                        table_map,
                        self._schemas.reason(*place),
                        is_shown=self._schemas.is_known_later(*place),
                    )
                plan = positional_plan(table_map, is_mariadb=is_mariadb)
            else:
                plan = RowPlan.make(table_map, schema, self._excluded, self._transforms)
            if len(self._plans) >= 1024:
                self._plans.clear()
            self._plans[table_map.table_id] = (plan, known)
        return plan
