"""Options and values that the contract promises and this version refuses by name.

One list, so that building one of them is: remove its line here and the words in
docs/reference/limitations.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["UNSUPPORTED", "UnsupportedOption", "reject_unsupported"]


class UnsupportedOption(NamedTuple):
    """Values of an option that this version refuses by name.

    Attributes
    ----------
    values : what the whole of a value must match, in any case.
    instead : what to do.
    """

    option: str
    values: str
    instead: str


UNSUPPORTED = (
    UnsupportedOption("startingOffset", "gtid:.*", "give FILE:POS or a time"),
    UnsupportedOption("endingOffset", "gtid:.*", "give FILE:POS or a time"),
    UnsupportedOption("failOnDataLoss", "false", "leave it out"),
)


def reject_unsupported(texts: Mapping[str, str]) -> None:
    """OptionError for the first rule that applies; `texts` are under the options' right names."""
    for rule in UNSUPPORTED:
        text = texts.get(rule.option)
        if text is not None and re.fullmatch(rule.values, text.strip(), re.IGNORECASE | re.DOTALL):
            raise OptionError(
                f"option {rule.option}: {text.strip()!r} is not built yet; {rule.instead}"
            )
