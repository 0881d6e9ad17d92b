"""Parse Spark's options, a mapping of texts, into `Options`.

Every error names the option and the expected value, and shows no secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr, ValidationError

from pyspark_mysqlbinlog.connector.options.checks import check_mask_secret, check_together
from pyspark_mysqlbinlog.connector.options.model import FIELDS, Options, field_info
from pyspark_mysqlbinlog.connector.options.values import Earliest, Snapshot
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["parse_options"]

_NAMES = {name.lower(): name for name in FIELDS}
# Not shown in messages: the value may be a secret given under the wrong name.
_SECRETS = frozenset({"password", "maskSecret"})
_MAX_SHOWN_CHARACTERS = 80


def parse_options(given: Mapping[str, str]) -> Options:
    """Read Spark's options.

    Raises
    ------
    OptionError : an option is unknown, given twice, wrong, missing, not supported yet or in
        conflict with another; the message names it, and shows no secret.
    """
    texts = _known(given)
    try:
        options = Options.model_validate(texts)
    except ValidationError as error:
        names = [str(problem["loc"][0]) for problem in error.errors(include_input=False)]
        problem = _wrong(names[0], texts)
    else:
        if isinstance(options.ending_offset, Earliest | Snapshot):
            raise _wrong("endingOffset", texts)
        check_together(options, texts, {name: field_info(name, "reads") for name in FIELDS})
        return _with_secrets_read(options)
    # Raised outside the handler, the error has no reference to pydantic's or to the texts in it.
    raise problem


def _known(given: Mapping[str, str]) -> dict[str, str]:
    """Return the texts by the options' canonical names."""
    texts: dict[str, str] = {}
    for key, text in given.items():
        name = _NAMES.get(key.lower())
        if name is None:
            near = difflib.get_close_matches(key.lower(), _NAMES, n=1, cutoff=0.6)
            hint = (
                f"did you mean {_NAMES[near[0]]}?"
                if near
                else "docs/reference/options.md lists them all"
            )
            raise OptionError(f"unknown option {key!r}: {hint}")
        if name in texts:
            raise OptionError(f"option {name}: given twice, in different case; remove one")
        texts[name] = text
    return texts


def _wrong(name: str, texts: Mapping[str, str]) -> OptionError:
    expects = field_info(name, "expects")
    text = texts[name] if len(texts[name]) <= _MAX_SHOWN_CHARACTERS else texts[name][:77] + "..."
    # The text before an @ may be an account with its password.
    found = "" if name in _SECRETS or (name == "host" and "@" in text) else f", found {text!r}"
    return OptionError(f"option {name}: expected {expects}{found}")


def _with_secrets_read(options: Options) -> Options:
    """Return the options with the contents of the files of secrets; OptionError if unreadable."""
    read = {}
    if options.password_file is not None:
        read["password"] = _secret_in("passwordFile", options.password_file)
    if options.mask_secret_file is not None:
        read["mask_secret"] = _secret_in("maskSecretFile", options.mask_secret_file)
    if read:
        options = options.model_copy(update=read)
    check_mask_secret(options)
    return options


def _secret_in(option: str, file: str) -> SecretStr:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    else:
        return SecretStr(text.removesuffix("\n").removesuffix("\r"))
    raise OptionError(
        f"option {option}: {file!r} can't be read: {reason}; it must be readable on the driver"
    )
