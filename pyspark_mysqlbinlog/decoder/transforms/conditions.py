"""Conditions of `rowFilter`: a small part of SQL, parsed once per table.

::

    condition  = conjunct { OR conjunct }
    conjunct   = negation { AND negation }
    negation   = NOT negation | "(" condition ")" | predicate
    predicate  = column [ ( "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "<=>" ) literal
                        | IS [ NOT ] NULL
                        | [ NOT ] IN "(" literal { "," literal } ")"
                        | [ NOT ] BETWEEN literal AND literal ]
    literal    = 'text' | [ "-" ] number | X'4142' | TRUE | FALSE | NULL

Names, texts and numbers are those of MySQL. A predicate is true, false or unknown (NULL), as in
SQL; a column alone is true if it is a number other than 0. `bound_conditions` lists the literals
that a value of each type is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

from pyspark_mysqlbinlog.decoder.sql.tokens import TokenKind, TokenStream
from pyspark_mysqlbinlog.errors import SchemaError

__all__ = [
    "And",
    "Comparison",
    "Condition",
    "IsNull",
    "IsTrue",
    "Literal",
    "Not",
    "Operator",
    "Or",
    "parse_condition",
]

Operator = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]
# NULL, a text, a number, or bytes.
Literal = str | Decimal | bytes | None

_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
_RESERVED = frozenset({"AND", "OR", "NOT", "IS", "IN", "BETWEEN", "NULL", "TRUE", "FALSE", "XOR"})
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a literal."""

    column: str
    operator: Operator
    literal: Literal


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is NULL; never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A column alone: whether it is a number other than 0."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    part: Condition


@dataclass(frozen=True, slots=True)
class And:
    """All of several conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of several conditions."""

    parts: tuple[Condition, ...]


Condition = Comparison | IsNull | IsTrue | Not | And | Or


def parse_condition(text: str) -> Condition:
    """Parse a condition; SchemaError reports what is expected where."""
    stream = TokenStream(text)
    condition = _disjunction(stream, 0)
    if not stream.at_end():
        raise stream.unexpected("AND, OR or the end")
    return condition


def _disjunction(stream: TokenStream, depth: int) -> Condition:
    parts = [_conjunction(stream, depth)]
    while stream.accept("OR"):
        parts.append(_conjunction(stream, depth))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _conjunction(stream: TokenStream, depth: int) -> Condition:
    parts = [_negation(stream, depth)]
    while stream.accept("AND"):
        parts.append(_negation(stream, depth))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _negation(stream: TokenStream, depth: int) -> Condition:
    if depth > _MAX_DEPTH:
        raise SchemaError(f"more than {_MAX_DEPTH} levels of NOT and parentheses")
    if stream.accept("NOT"):
        return Not(_negation(stream, depth + 1))
    if stream.accept("("):
        condition = _disjunction(stream, depth + 1)
        stream.expect(")")
        return condition
    return _predicate(stream)


def _predicate(stream: TokenStream) -> Condition:
    token = stream.peek()
    if token.kind is TokenKind.WORD and (token.word in _RESERVED or token.text[0].isdigit()):
        raise stream.unexpected("a column")
    column = stream.name("a column")
    if stream.at(".") or stream.at("("):
        raise stream.unexpected("a comparison: a column is one name, and functions do not exist")
    operator = _OPERATORS.get(stream.peek().word)
    if operator is not None:
        stream.next()
        return Comparison(column, operator, _literal(stream))
    if stream.accept("IS"):
        is_negated = stream.accept("NOT")
        stream.expect("NULL")
        return Not(IsNull(column)) if is_negated else IsNull(column)
    is_negated = stream.accept("NOT")
    if stream.accept("IN"):
        found: Condition = _membership(stream, column)
    elif stream.accept("BETWEEN"):
        low = Comparison(column, ">=", _literal(stream))
        stream.expect("AND")
        found = And((low, Comparison(column, "<=", _literal(stream))))
    elif is_negated:
        raise stream.unexpected("IN or BETWEEN")
    elif stream.at_end() or stream.peek().word in {"AND", "OR", ")"}:
        return IsTrue(column)
    else:
        raise stream.unexpected("a comparison, IS NULL, IN, BETWEEN, AND, OR or the end")
    return Not(found) if is_negated else found


def _membership(stream: TokenStream, column: str) -> Condition:
    stream.expect("(")
    parts: list[Condition] = [Comparison(column, "=", _literal(stream))]
    while stream.accept(","):
        parts.append(Comparison(column, "=", _literal(stream)))
    stream.expect(")")
    return Or(tuple(parts))


def _literal(stream: TokenStream) -> Literal:
    if stream.accept("NULL"):
        return None
    if stream.accept("TRUE"):
        return Decimal(1)
    if stream.accept("FALSE"):
        return Decimal(0)
    sign = stream.accept_any("-", "+") or ""
    token = stream.peek()
    if token.kind is TokenKind.NUMBER:
        return Decimal(f"{sign}{stream.next().text}")
    if not sign and token.kind is TokenKind.STRING:
        return stream.next().text
    if not sign and token.kind is TokenKind.HEX:
        digits = stream.next().text
        return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
    raise stream.unexpected("a text, a number, X'…', TRUE, FALSE or NULL")
