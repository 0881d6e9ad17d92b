"""Options and values that are planned and that this version rejects with an error.

To support one of them, remove its line here and the words in docs/reference/limitations.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["UNSUPPORTED", "UnsupportedOption", "reject_unsupported"]


class UnsupportedOption(NamedTuple):
    """Values of an option that this version rejects.

    Attributes
    ----------
    values : a regex for the whole value, in any case.
    instead : what to do.
    """

    option: str
    values: str
    instead: str


UNSUPPORTED = (UnsupportedOption("failOnDataLoss", "false", "remove it"),)


def reject_unsupported(texts: Mapping[str, str]) -> None:
    """Raise OptionError for the first rule that applies; `texts` are by canonical option names."""
    for rule in UNSUPPORTED:
        text = texts.get(rule.option)
        if text is not None and re.fullmatch(rule.values, text.strip(), re.IGNORECASE | re.DOTALL):
            raise OptionError(
                f"option {rule.option}: {text.strip()!r} is not supported yet; {rule.instead}"
            )
