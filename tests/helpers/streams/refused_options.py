"""Options that are refused: the least that a read needs, and the error of whatever is wrong."""

from __future__ import annotations

import traceback

import pytest

from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["SECRET", "SERVER", "refused"]

# No error may show it.
SECRET = "s3cret-value"
SERVER = {"host": "db", "user": "repl"}


def refused(options: dict[str, str]) -> str:
    with pytest.raises(OptionError) as caught:
        parse_options(options)
    text = str(caught.value)
    assert "\n" not in text
    # pydantic's error holds what was given: nothing may lead to it.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "pydantic" not in "".join(traceback.format_exception(caught.value))
    return text
