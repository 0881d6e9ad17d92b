"""Rejected options: the minimal options of a read, and the error of invalid options."""

from __future__ import annotations

import traceback

import pytest

from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["SECRET", "SERVER", "refused"]

# No error may contain it.
SECRET = "s3cret-value"
SERVER = {"host": "db", "user": "repl"}


def refused(options: dict[str, str]) -> str:
    with pytest.raises(OptionError) as caught:
        parse_options(options)
    text = str(caught.value)
    assert "\n" not in text
    # pydantic's error contains the given values, so the exception must not refer to it.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "pydantic" not in "".join(traceback.format_exception(caught.value))
    return text
