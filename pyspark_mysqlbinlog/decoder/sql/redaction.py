"""A statement's text without its literals, which may be values of rows.

Texts, bits and hexadecimals become ``'?'``, and numbers ``0``; the length of a type stays, as in
``varchar(20)``. Comments are removed, apart from executable ones. Tables, columns and clauses of
the statement are the same.
"""

from __future__ import annotations

import re

from pyspark_mysqlbinlog.decoder.sql.tokens import DEFAULT_CONTEXT, SqlContext

__all__ = ["without_literals"]

_WITH_LENGTH = frozenset(
    {
        *("BIT", "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "UNSIGNED"),
        *("DECIMAL", "DEC", "NUMERIC", "FIXED", "FLOAT", "DOUBLE", "PRECISION", "REAL"),
        *("CHAR", "CHARACTER", "VARYING", "VARCHAR", "VARCHARACTER", "NCHAR", "NVARCHAR"),
        *("BINARY", "VARBINARY", "TEXT", "BLOB", "VECTOR"),
        *("DATETIME", "TIMESTAMP", "TIME", "YEAR"),
    }
)
_BACKSLASHES = r"""'(?:[^'\\]++|''|\\.)*+(?:'|\Z) | "(?:[^"\\]++|""|\\.)*+(?:"|\Z)"""
_PLAIN = r"""'(?:[^']++|'')*+(?:'|\Z) | "(?:[^"]++|"")*+(?:"|\Z)"""
_TEMPLATE = r"""
      (?P<text>[xXbBnN]?(?:{texts}))
    | (?P<name>`(?:[^`]++|``)*+(?:`|\Z))
    | (?P<comment>/\*(?!M?!)(?:(?!\*/).)*+(?:\*/|\Z) | \#[^\n]* | --(?=[\x00-\x20]|\Z)[^\n]*)
    | (?P<executable>/\*M?!\d*)
    | (?P<number>(?<![0-9A-Za-z_$\x80-\U0010ffff])
        (?:0x[0-9a-fA-F]+ | 0b[01]+ | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
        (?![0-9A-Za-z_$\x80-\U0010ffff]))
    | (?P<word>[0-9A-Za-z_$\x80-\U0010ffff]+)
    | (?P<symbol>[()])
"""
_WITH_BACKSLASHES = _TEMPLATE.format(texts=_BACKSLASHES)
_WITHOUT_BACKSLASHES = _TEMPLATE.format(texts=_PLAIN)
_FLAGS = re.VERBOSE | re.DOTALL


def without_literals(sql: str, context: SqlContext = DEFAULT_CONTEXT) -> str:
    """Return a statement without its literals; also of one that is cut off inside a literal.

    context : determines the meaning of a backslash. With a wrong one, the end of a text may be
        missed.
    """
    parts: list[str] = []
    end, word = 0, ""
    # For each open parenthesis, whether it contains a type's length.
    lengths: list[bool] = []
    pattern = _WITHOUT_BACKSLASHES if context.no_backslash_escapes else _WITH_BACKSLASHES
    for found in re.finditer(pattern, sql, _FLAGS):
        parts.append(sql[end : found.start()])
        end, shown = found.end(), found[0]
        match found.lastgroup:
            case "text":
                is_name = shown[0] == '"' and context.ansi_quotes
                parts.append(shown if is_name else "'?'")
                word = ""
            case "comment":
                parts.append(" ")
            case "number":
                parts.append(shown if lengths and lengths[-1] else "0")
                word = ""
            case "symbol":
                if shown == "(":
                    lengths.append(word in _WITH_LENGTH)
                elif lengths:
                    lengths.pop()
                parts.append(shown)
                word = ""
            case _:
                parts.append(shown)
                word = shown.upper() if found.lastgroup == "word" else ""
    parts.append(sql[end:])
    return "".join(parts)
