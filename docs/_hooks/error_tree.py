"""The tree of errors, from the classes of `pyspark_mysqlbinlog.errors`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog import errors

__all__ = ["error_tree"]


def error_tree() -> str:
    """Return nested lists of the classes, each with the first line of its docstring."""
    return "\n".join(_lines(errors.MySQLBinlogError, 0))


def _lines(error: type[Exception], depth: int) -> Iterator[str]:
    text = " ".join((error.__doc__ or "").split("\n\n")[0].split())
    yield f"{'    ' * depth}- `{error.__name__}`: {text}"
    names = [name for name in errors.__all__ if name != "cause_of"]
    classes = [getattr(errors, name) for name in names]
    below = [each for each in classes if error in each.__bases__]
    for each in sorted(below, key=lambda each: str(each.__name__)):
        yield from _lines(each, depth + 1)
