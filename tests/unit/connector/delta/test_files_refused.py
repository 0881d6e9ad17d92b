"""A mirror reads column definitions and existing rows from a server."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.errors import OptionError


def test_mirror_with_option_path_is_rejected() -> None:
    with pytest.raises(OptionError, match="option path: a mirror needs a server"):
        DeltaMirror("/lake/{table}", "/checkpoint", {"path": "/logs", "startingOffset": "earliest"})
