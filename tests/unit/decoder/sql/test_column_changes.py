"""Names of columns after a statement, or an error if they are uncertain."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.decoder.sql.column_changes import CannotFollowError, renamed
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

ID, V = C("id", "int", nullable=False), C("v", "varchar", 20, charset="utf8mb4")
N = C("n", "int")


def _table(*columns: C) -> TableSchema:
    return TableSchema("d", "t", columns, ("id",))


BEFORE = _table(ID, V, N)


@pytest.mark.parametrize(
    ("after", "statement", "expected"),
    [
        ((ID, V, N, C("x", "int")), None, {"id": "id", "v": "v", "n": "n"}),
        ((ID, V, C("m", "int")), None, {"id": "id", "v": "v", "n": "m"}),
        ((ID, V, C("N", "int")), None, {"id": "id", "v": "v", "n": "N"}),
        ((ID, N), "/* data-losing */ ALTER TABLE t DROP COLUMN v", {"id": "id", "n": "n"}),
        (
            (ID, C("w", "varchar", 30, charset="utf8mb4"), C("m", "int")),
            "/* data-losing */ ALTER TABLE t DROP n, ADD m INT, CHANGE v w VARCHAR(30)",
            {"id": "id", "v": "w"},
        ),
    ],
)
def test_columns_of_a_changed_table_map_to_their_new_names(
    after: tuple[C, ...], statement: str | None, expected: dict[str, str]
) -> None:
    assert renamed(BEFORE, _table(*after), statement) == expected


@pytest.mark.parametrize(
    ("after", "statement"),
    [
        # No statement shows which new column is which old one.
        ((ID, C("a", "varchar", 20, charset="utf8mb4"), C("b", "int")), None),
        ((ID, V, C("a", "int"), C("b", "int")), None),
        ((ID, V), None),
        ((ID, V, N, C("w", "int", nullable=False)), "ALTER TABLE t ADD w INT NOT NULL DEFAULT 5"),
        (
            (ID, C("v", "varchar", 20, charset="latin1")),
            "ALTER TABLE t DROP n, MODIFY v VARCHAR(20) CHARACTER SET latin1",
        ),
        ((ID, V), "ALTER TABLE t DROP n, DROP PARTITION p0"),
        ((ID, V), "ALTER IGNORE TABLE t DROP n, ADD UNIQUE (v)"),
        ((ID, V), "RENAME TABLE t TO x, y TO t"),
        ((ID, V), "ALTER TABLE t DROP something(that can't be read"),
        (
            (ID, C("n", "varchar", 20, charset="utf8mb4"), C("v", "int")),
            "ALTER TABLE t CHANGE v n VARCHAR(20), CHANGE n v INT",
        ),
        ((ID, V, N), "/* data-losing */ ALTER TABLE t DROP n, ADD n INT"),
        ((ID, C("v", "int")), "/* data-losing */ ALTER TABLE t DROP v, CHANGE n v INT"),
        # Another kind of statement.
        ((ID, V, N, C("x", "int")), "CREATE OR REPLACE TABLE t (id INT, v INT, n INT, x INT)"),
        ((ID, V, N, C("x", "int")), "/* data-losing */ CREATE TABLE t (id INT)"),
        # A clause that the server executes if it has another version.
        ((ID, V, C("x", "int")), "ALTER TABLE t DROP n /*!80000 , ADD x INT DEFAULT 5 */"),
        ((ID, V, C("x", "int")), "ALTER TABLE t DROP n /*M! , ADD x INT DEFAULT 5 */"),
        # A clause under NO_BACKSLASH_ESCAPES, text in a comment otherwise.
        (
            (ID, V, C("x", "int"), C("y", "int")),
            r"ALTER TABLE t DROP n, ADD x INT COMMENT '\', ADD y INT DEFAULT 5 COMMENT ' -- '",
        ),
        # The statement does not result in the new columns.
        ((ID, V), "ALTER TABLE t DROP v"),
    ],
)
def test_column_changes_of_uncertain_effect_raise_cannot_follow_error(
    after: tuple[C, ...], statement: str | None
) -> None:
    with pytest.raises(CannotFollowError):
        renamed(BEFORE, _table(*after), statement)
