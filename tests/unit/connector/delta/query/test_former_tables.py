"""Tables that lose their catalog name to another table in a batch."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.delta.query.former_tables import former_tables
from pyspark_mysqlbinlog.connector.delta.store.places.names import NameTemplate
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table

_NAME = NameTemplate.parse("m.{database}.{table}")
_ALTERED, _DROPPED = UnknownSchema("altered"), UnknownSchema("dropped", is_dropped=True)


def _versions(*versions: tuple[int, UnknownSchema]) -> TableVersions:
    return TableVersions(tuple((Position.of("b.000001", pos), what) for pos, what in versions))


_UP_TO_9 = _versions((0, _ALTERED), (9, _DROPPED))
_FROM_9 = _versions((9, _ALTERED))


@pytest.mark.parametrize(
    ("tables", "former"),
    [
        ({"t": _versions((0, _ALTERED)), "u": _versions((0, _ALTERED))}, {}),
        ({"t": _UP_TO_9, "T": _FROM_9}, {"t": "T"}),
        ({"t": _FROM_9, "T": _UP_TO_9}, {"T": "t"}),
        ({"t": _UP_TO_9, "T": _versions((20, _ALTERED), (30, _ALTERED))}, {"t": "T"}),
        ({"t": _UP_TO_9, "T": _versions((20, _ALTERED), (30, _DROPPED))}, {"t": "T"}),
        ({"t": _versions((0, _DROPPED)), "T": _FROM_9}, {"t": "T"}),
        ({"t": _versions((0, _DROPPED)), "T": _versions((0, _DROPPED))}, {"t": "t", "T": "t"}),
        (
            {
                "t": _versions((0, _ALTERED), (9, _DROPPED), (20, _ALTERED)),
                "T": _versions((9, _ALTERED), (20, _DROPPED)),
            },
            {"T": "t"},
        ),
    ],
)
def test_former_table_is_mapped_to_the_table_that_took_its_catalog_name(
    tables: dict[str, TableVersions], former: dict[str, str]
) -> None:
    found = former_tables({("d", name): each for name, each in tables.items()}, _NAME)
    assert {one[1]: other[1] for one, other in found.items()} == former


@pytest.mark.parametrize(
    "tables",
    [
        {"t": _versions((0, _ALTERED)), "T": _versions((0, _ALTERED))},
        {"t": _versions((0, _ALTERED)), "T": _FROM_9},
        {"t": _versions((0, _ALTERED), (10, _DROPPED)), "T": _FROM_9},
        {"t": _UP_TO_9, "T": _versions((3, _ALTERED), (5, _DROPPED))},
    ],
)
def test_tables_of_one_catalog_name_at_the_same_time_are_rejected(
    tables: dict[str, TableVersions],
) -> None:
    given: dict[Table, TableVersions] = {("d", name): each for name, each in tables.items()}
    with pytest.raises(OptionError, match=r"`d`\.`t` and `d`\.`T` would be one Delta table"):
        former_tables(given, _NAME)
