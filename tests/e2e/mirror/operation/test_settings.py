"""DeltaMirror under global settings of the server: equal to SELECT under default settings.

The settings are in `helpers/writers/global_settings.py`. They are tested one group after the other
in tests/live/access/test_settings_reach.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirrored_rows import assert_same_rows
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.writers.global_settings import (
    GROUPS,
    Tables,
    Values,
    globally,
    plain_account,
    with_tables,
)

# One sql_mode is enough here, and `release` could hide the effect of other settings.
LEFT_OUT = {"autocommit", "release", "strict", "oracle"}
SETTINGS: dict[str, Values] = {
    "release": GROUPS["release"],
    "all others": {
        name: value
        for group, values in GROUPS.items()
        if group not in LEFT_OUT
        for name, value in values.items()
    }
    | {"init_connect": "SET autocommit = 0"},
}


@pytest.mark.one_server
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("server_name", every_server())
def test_tables_under_global_server_settings_equal_select(
    spark: SparkSession,
    tmp_path: Path,
    server_name: str,
    settings: str,
    request: pytest.FixtureRequest,
) -> None:
    server: Server = request.getfixturevalue(server_name)
    with with_tables(server, "settings_mirrored") as tables, plain_account(server) as account:
        mirrored = MirroredDatabase(
            spark,
            server,
            tables.database,
            tmp_path,
            startingOffset="snapshot",
            maxRowsPerTrigger="30",
            sslMode="DISABLED",
            **account,
        )
        with globally(server, SETTINGS[settings]):
            mirrored.run()
            _assert_same(mirrored, tables)
            tables.change()
            mirrored.run()
            _assert_same(mirrored, tables)


def _assert_same(mirrored: MirroredDatabase, tables: Tables) -> None:
    for schema, rows in zip(tables.schemas, tables.selected(), strict=True):
        assert rows
        path = mirrored.folder / "lake" / schema.database / schema.table
        assert_same_rows(path, schema, rows)
