"""The error classes: exports, the documented hierarchy, and pickling."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest

from pyspark_mysqlbinlog import errors
from pyspark_mysqlbinlog.connector.tail.log_tail import SupersededError
from pyspark_mysqlbinlog.errors import LostConnectionError, MySQLBinlogError, ServerError

# The errors that the source itself always catches: no user ever sees one.
CAUGHT = {SupersededError}


def tree(error: type[MySQLBinlogError] = MySQLBinlogError) -> Iterator[type[MySQLBinlogError]]:
    yield error
    for below in error.__subclasses__():
        # A private error is caught in its own module.
        if not below.__name__.startswith("_") and below not in CAUGHT:
            yield from tree(below)


def test_errors_module_exports_every_error_class() -> None:
    assert {error.__name__ for error in tree()} | {"cause_of"} == set(errors.__all__)


def test_error_tree_in_docstring_equals_class_hierarchy() -> None:
    assert errors.__doc__ is not None
    lines = re.findall(r"^    ([ │├└─]*)(\w+Error)\b", errors.__doc__, re.MULTILINE)
    drawn: dict[str, str] = {}
    # The current branch, as (indentation, error).
    branch: list[tuple[int, str]] = []
    for rule, name in lines:
        while branch and branch[-1][0] >= len(rule):
            branch.pop()
        drawn[name] = branch[-1][1] if branch else ""
        branch.append((len(rule), name))
    below = [error for error in tree() if error is not MySQLBinlogError]
    parents = {error.__name__: error.__bases__[0].__name__ for error in below}
    assert drawn == {"MySQLBinlogError": "", **parents}


@pytest.mark.parametrize("kind", [*tree()])
def test_every_error_class_survives_pickling(kind: type[MySQLBinlogError]) -> None:
    """Errors are sent from executors to the driver."""
    error = kind("two\nlines", file="b.000001", position=4, table="d.t")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) == "two lines (at b.000001:4, table d.t)"
    assert (copy.message, copy.file, copy.position, copy.table) == (
        "two lines", "b.000001", 4, "d.t",
    )  # fmt: skip


@pytest.mark.parametrize("kind", [ServerError, LostConnectionError])
def test_server_error_code_survives_location_and_pickling(kind: type[ServerError]) -> None:
    assert kind("refused").code is None
    error = kind("refused", code=1064).with_location("b.000001", 4)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, str(copy)) == (1064, "refused (at b.000001:4)")
