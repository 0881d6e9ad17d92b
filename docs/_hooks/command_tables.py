"""Tables of the flags of `pyspark-mysqlbinlog`, from the parameters of its typer commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple, get_type_hints

from typer.models import ArgumentInfo

from pyspark_mysqlbinlog.connector.cli.commands import command_function

__all__ = ["command_table"]

# The type of a parameter -> the name of its value.
_VALUES = {
    "bool": "",
    "int": "integer",
    "float": "number",
    "str": "text",
    "Path": "path",
    "list": "text, repeatable",
}


class _Flag(NamedTuple):
    name: str
    kind: type
    default: Any
    info: Any

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


def command_table(command: str, panel: str) -> str:
    """Return the table of one help panel of a command; `-` stands for a space in its name."""
    flags = [*_flags(command)]
    missing = [each.name for each in flags if each.info.rich_help_panel is None]
    found = [each for each in flags if each.info.rich_help_panel == panel.replace("-", " ")]
    if missing or not found:
        raise ValueError(f"{command}: flags without a panel {missing}, or no panel {panel!r}")
    lines = ["| flag | value | default | meaning |", "|---|---|---|---|"]
    lines += [_row(each) for each in sorted(found, key=lambda each: not each.is_required)]
    return "\n".join(lines)


def _flags(command: str) -> Iterator[_Flag]:
    function = command_function(command)
    annotated = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = annotated[name]
        info = hint.__metadata__[0]
        # In an annotation typer takes the first of a flag's own names for the default.
        names = [
            each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)
        ]
        # `list[str] | None` is a list of texts that need not be given.
        kinds = getattr(hint.__origin__, "__args__", None) or (hint.__origin__,)
        kind = getattr(kinds[0], "__origin__", kinds[0])
        shown = ", ".join(sorted(names, key=len)) or f"--{name.replace('_', '-')}"
        if isinstance(info, ArgumentInfo):
            shown = name.upper()
        yield _Flag(shown, kind, parameter.default, info)


def _row(flag: _Flag) -> str:
    default = "required" if flag.is_required else f"`{flag.default}`"
    if flag.default is None or flag.default is False:
        default = ""
    meaning = flag.info.help.replace("|", "\\|")
    return f"| `{flag.name}` | {_VALUES[flag.kind.__name__]} | {default} | {meaning} |"
