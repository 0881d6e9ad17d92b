"""The options `maskColumns`, `maskSecret` and `rowFilter` as `Transforms`.

Both mappings are JSON objects. The keys of `maskColumns` are columns in the forms of
`excludeColumns`; of several that match a column, the first one counts. The keys of `rowFilter` are
names of tables.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.decoder.transforms.conditions import Condition, parse_condition
from pyspark_mysqlbinlog.decoder.transforms.masks import Mask, parse_mask
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.errors import OptionError, SchemaError
from pyspark_mysqlbinlog.names import Table, fold, table_folding

__all__ = ["MIN_SECRET_BYTES", "masks_of", "parse_transforms", "row_conditions", "transforms_hash"]

# A hash of a value from a small set, such as a phone number, is only as secret as its key.
MIN_SECRET_BYTES = 16
_HASH_LENGTH = 16


def masks_of(columns: Mapping[str, str] | None) -> dict[str, Mask]:
    """Parse `maskColumns`: column or pattern -> its mask; OptionError for an unknown mask."""
    masks = {}
    for pattern, text in (columns or {}).items():
        try:
            masks[pattern] = parse_mask(text)
        except ValueError as error:
            problem = f"option maskColumns: {pattern}: {error}, found {text!r}"
        else:
            continue
        raise OptionError(problem)
    return masks


def row_conditions(
    conditions: Mapping[str, str] | None, case_sensitive: bool
) -> dict[Table, Condition]:
    """Parse `rowFilter`: (database, table) -> its condition, names folded as the server does.

    Raises OptionError for a name that is not that of one table, a table that is named twice, and a
    condition that cannot be read.
    """
    found: dict[Table, Condition] = {}
    folded = table_folding(case_sensitive)
    for name, text in (conditions or {}).items():
        literals = TableFilter.parse(name, None, case_sensitive).literals
        if len(literals) != 1:
            raise OptionError(
                f"option rowFilter: expected the name of one table, database.table, found {name!r}"
            )
        table = folded(literals[0])
        if table in found:
            raise OptionError(
                f"option rowFilter: expected one condition for {'.'.join(table)}, found two"
            )
        try:
            found[table] = parse_condition(text)
        except SchemaError as error:
            problem = error.message.replace(" in a statement", "")
        else:
            continue
        raise OptionError(f"option rowFilter: the condition of {name}: {problem}; found {text!r}")
    return found


def parse_transforms(
    columns: Mapping[str, str] | None,
    secret: str | None,
    conditions: Mapping[str, str] | None,
    case_sensitive: bool,
) -> Transforms | None:
    """Parse the options; None if no row is transformed.

    Raises
    ------
    OptionError : a column's form, a mask, a table's name or a condition is wrong.
    """
    if not columns and not conditions:
        return None
    masks = [
        (ColumnFilter.parse(pattern, case_sensitive, option="maskColumns"), mask)
        for pattern, mask in masks_of(columns).items()
    ]
    by_table = row_conditions(conditions, case_sensitive)
    folded = table_folding(case_sensitive)
    named: dict[Table, set[str]] = {}
    for pattern, _ in masks:
        for database, table, column in pattern.literals:
            named.setdefault(folded((database, table)), set()).add(fold(column))

    def mask_of(database: str, table: str, column: str) -> Mask | None:
        return next(
            (mask for pattern, mask in masks if pattern.excludes(database, table, column)), None
        )

    return Transforms(
        mask_of,
        lambda database, table: frozenset(named.get(folded((database, table)), ())),
        frozenset(named) | frozenset(by_table),
        lambda database, table: by_table.get(folded((database, table))),
        _bytes(secret or ""),
    )


def transforms_hash(
    columns: Mapping[str, str] | None, secret: str | None, conditions: Mapping[str, str] | None
) -> str:
    """Return a short text that differs for other transforms, also for another secret.

    Empty without transforms. The secret cannot be found from it.
    """
    if not columns and not conditions:
        return ""
    given = repr((list((columns or {}).items()), sorted((conditions or {}).items())))
    text = f"mysqlbinlog transforms 1 {given}".encode("utf-8", "surrogatepass")
    if secret is None:
        return hashlib.sha256(text).hexdigest()[:_HASH_LENGTH]
    return hmac.digest(_bytes(secret), text, "sha256").hex()[:_HASH_LENGTH]


def _bytes(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogatepass")
