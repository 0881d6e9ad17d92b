"""SQL text to tokens, by MySQL's own lexical rules.

A QUERY event contains the statement as the client sent it, so comments, quotes and backslashes have
the server's meaning. Two rules depend on the session: ANSI_QUOTES and NO_BACKSLASH_ESCAPES in its
sql_mode. Executable comments (``/*!50100 … */``) are text to a server of that version, and are read
as such; a general SQL tokenizer drops them, and an ``UNSIGNED`` in them. Tokens are made one at a
time: the first three determine the kind of most statements, and a statement may have megabytes.
(MySQL: sql/sql_lex.cc, lex_one_token.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple

from pyspark_mysqlbinlog.errors import SchemaError

__all__ = [
    "DEFAULT_CONTEXT",
    "UNKNOWN_VERSION",
    "SqlContext",
    "Token",
    "TokenKind",
    "TokenStream",
]

# Assumed if the server is unknown, as for statements that a user supplies: the last 5.7.
UNKNOWN_VERSION = 50799

# Bits of sql_mode (Q_SQL_MODE_CODE in a QUERY event's status variables; sql/query_options.h).
_REAL_AS_FLOAT = 1
_ANSI_QUOTES = 4
_ORACLE = 1 << 9
_MAXDB = 1 << 12
_NO_BACKSLASH_ESCAPES = 1 << 20


@dataclass(frozen=True, slots=True)
class SqlContext:
    """Session and server settings that affect how a statement's text is read.

    Attributes
    ----------
    ansi_quotes, no_backslash_escapes, real_as_float, maxdb : the session's sql_mode.
    oracle : the session's sql_mode, on MariaDB; only there it changes the meaning of types.
    server_version : as in executable comments, 50741 is 5.7.41; newer ones are comments.
    mariadb : JSON is LONGTEXT, ``/*M! … */`` is text, ``/*!50700`` to ``/*!99999`` is not.
    explicit_defaults_for_timestamp : off (5.7's default): a TIMESTAMP without NULL is NOT NULL.
    """

    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    real_as_float: bool = False
    maxdb: bool = False
    oracle: bool = False
    server_version: int = UNKNOWN_VERSION
    mariadb: bool = False
    explicit_defaults_for_timestamp: bool = False

    @classmethod
    @lru_cache(maxsize=64)
    def of(
        cls,
        sql_mode: int,
        server_version: str,
        explicit_defaults_for_timestamp: bool = False,
    ) -> SqlContext:
        """Make it from a QUERY event's sql_mode bits and a version text such as ``5.7.41-log``."""
        match = re.match(r"(\d+)\.(\d+)\.(\d+)", server_version.removeprefix("5.5.5-"))
        number = UNKNOWN_VERSION
        mariadb = "mariadb" in server_version.lower()
        if match:
            major, minor, patch = (int(part) for part in match.groups())
            number = major * 10000 + minor * 100 + patch
        return cls(
            ansi_quotes=bool(sql_mode & _ANSI_QUOTES),
            no_backslash_escapes=bool(sql_mode & _NO_BACKSLASH_ESCAPES),
            real_as_float=bool(sql_mode & _REAL_AS_FLOAT),
            maxdb=bool(sql_mode & _MAXDB),
            oracle=mariadb and bool(sql_mode & _ORACLE),
            server_version=number,
            mariadb=mariadb,
            explicit_defaults_for_timestamp=explicit_defaults_for_timestamp,
        )

    @property
    def most_version_digits(self) -> int:
        """Maximum digits of an executable comment's version: MySQL before 8.0 reads five.

        (Measured on 5.6.24, 5.7.41, 9.7.4 and MariaDB 10.11; 8.0 was not tested.)
        """
        return 5 if self.server_version < 80000 and not self.mariadb else 6

    def executes(self, version: int | None, for_mariadb: bool) -> bool:
        """Whether an executable comment with this version is text to the server."""
        if for_mariadb and not self.mariadb:
            return False
        if version is None:
            return True
        if self.mariadb and not for_mariadb and 50700 <= version < 100000:
            return False  # MariaDB diverged from MySQL at 5.7
        return version <= self.server_version


DEFAULT_CONTEXT = SqlContext()


class TokenKind(IntEnum):
    """The kind of a token."""

    WORD = 1  # a keyword or a bare name
    NAME = 2  # a quoted name
    STRING = 3  # a string literal, unescaped
    HEX = 4  # x'41' or 0x41: text is the digits
    BITS = 5  # b'01' or 0b01: text is the digits
    NUMBER = 6
    SYMBOL = 7
    END = 8


class Token(NamedTuple):
    """One token: its kind and its text; a WORD as written."""

    kind: TokenKind
    text: str

    @property
    def word(self) -> str:
        """The keyword in upper case, or the symbol; empty for quoted tokens."""
        if self.kind is TokenKind.WORD:
            return self.text.upper()
        return self.text if self.kind is TokenKind.SYMBOL else ""

    @property
    def shown(self) -> str:
        """The token as an error shows it: without a literal, which may be the value of a row."""
        if self.kind is TokenKind.END:
            return "the end"
        return _LITERALS.get(self.kind) or repr(self.text[:40])


_LITERALS = {
    TokenKind.STRING: "a text",
    TokenKind.HEX: "a hexadecimal",
    TokenKind.BITS: "bits",
    TokenKind.NUMBER: "a number",
}

END = Token(TokenKind.END, "")

_DOT = re.compile(r"(?P<symbol>\.)")
_NAME_AFTER_DOT = re.compile(r"[0-9A-Za-z_$\x80-\U0010ffff]+")
_QUOTED = {
    "'": re.compile(r"((?:[^'\\]++|''|\\.)*+)'", re.DOTALL),
    '"': re.compile(r'((?:[^"\\]++|""|\\.)*+)"', re.DOTALL),
}
_QUOTED_PLAIN = {
    "'": re.compile(r"((?:[^']++|'')*+)'"),
    '"': re.compile(r'((?:[^"]++|"")*+)"'),
    "`": re.compile(r"((?:[^`]++|``)*+)`"),
}
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# `\%` and `\_` keep their backslash; any other escaped character becomes itself.
_ESCAPES = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of any token; compiled on first use, because that takes long."""
    # A digit may begin a name (`2a`), but `2e5` is a number; `$` and all beyond ASCII are letters,
    # but not U+00A0, which is a space to a server whose client's character set is, say, latin1.
    return re.compile(
        r"""
          (?P<space>[\x00-\x20]+ | \#[^\n]* | --(?=[\x00-\x20]|\Z)[^\n]*)
        | (?P<executable>/\*(?P<maria>M?)!(?P<version>\d{5,6})?)
        | (?P<comment>/\*)
        | (?P<close>\*/)
        | (?P<hex>[xX]'(?P<hexdigits>[0-9a-fA-F]*)' | 0x(?P<hexbare>[0-9a-fA-F]+)(?![\w$]))
        | (?P<bits>[bB]'(?P<bitdigits>[01]*)' | 0b(?P<bitbare>[01]+)(?![\w$]))
        | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
            (?![0-9A-Za-z_$\x80-\U0010ffff]))
        | (?P<word>[0-9A-Za-z_$\x80-\x9f\xa1-\U0010ffff]+)
        | (?P<quote>['"`])
        | (?P<symbol>:= | <=> | <= | >= | <> | != | << | >> | \|\| | && | ->> | -> | .)
        """,
        re.VERBOSE | re.DOTALL,
    )


def _unescape(text: str, quote: str) -> str:
    # In one pass, so that doubled and escaped quotes do not affect each other's result.
    if "\\" not in text:
        return text.replace(quote * 2, quote)
    parts = _ESCAPE.split(text)  # plain, escaped character, plain, …
    for index in range(0, len(parts), 2):
        parts[index] = parts[index].replace(quote * 2, quote)
    for index in range(1, len(parts), 2):
        parts[index] = _ESCAPES.get(parts[index], parts[index])
    return "".join(parts)


def _skip_comment(sql: str, pos: int, nested: bool) -> int:
    """Return the position after the ``*/`` of a comment; a skipped one may contain another."""
    end = sql.find("*/", pos)
    if nested:
        inner = sql.find("/*", pos)
        while 0 <= inner < end:
            inner_end = sql.find("*/", inner + 2)
            if inner_end < 0:
                break
            pos = inner_end + 2
            end = sql.find("*/", pos)
            inner = sql.find("/*", pos)
    if end < 0:
        raise SchemaError("a statement has a comment that does not end")
    return end + 2


def tokens(sql: str, context: SqlContext = DEFAULT_CONTEXT) -> Iterator[Token]:
    """Yield the tokens of a statement, without comments and spaces.

    Raises SchemaError for an unterminated quote or comment.
    """
    pos = 0
    length = len(sql)
    open_executable = 0
    name_end = -1
    pattern = _pattern()
    while pos < length:
        match = pattern.match(sql, pos)
        assert match is not None  # the last alternative matches any character
        pos = match.end()
        group = match.lastgroup
        if group == "number" and match.start() == name_end and sql[name_end] == ".":
            # t.2e5 is a name after a dot, not .2e5 after a name
            match = _DOT.match(sql, name_end)
            assert match is not None
            pos, group = match.end(), "symbol"
        if group == "space":
            continue
        if group == "word":
            name_end = pos
            yield Token(TokenKind.WORD, match["word"])
        elif group == "symbol":
            yield Token(TokenKind.SYMBOL, match["symbol"])
            if match["symbol"] == ".":
                # After a dot all is a name: `t`.1x, t.2e5
                name = _NAME_AFTER_DOT.match(sql, pos)
                if name is not None:
                    pos = name_end = name.end()
                    yield Token(TokenKind.WORD, name[0])
        elif group == "quote":
            quote = match["quote"]
            is_name = quote == "`" or (quote == '"' and context.ansi_quotes)
            plain = is_name or context.no_backslash_escapes
            body = (_QUOTED_PLAIN if plain else _QUOTED)[quote].match(sql, pos)
            if body is None:
                raise SchemaError(f"a statement has a {quote} that does not end")
            pos = body.end()
            if is_name:
                name_end = pos
            text = body[1].replace(quote * 2, quote) if plain else _unescape(body[1], quote)
            yield Token(TokenKind.NAME if is_name else TokenKind.STRING, text)
        elif group == "number":
            yield Token(TokenKind.NUMBER, match["number"])
        elif group == "hex":
            yield Token(TokenKind.HEX, match["hexdigits"] or match["hexbare"] or "")
        elif group == "bits":
            yield Token(TokenKind.BITS, match["bitdigits"] or match["bitbare"] or "")
        elif group == "comment":
            pos = _skip_comment(sql, pos, nested=False)
        elif group == "close":
            if open_executable:
                open_executable -= 1
            else:
                yield Token(TokenKind.SYMBOL, "*")
                pos = match.start() + 1
        else:
            digits = match["version"] or ""
            if len(digits) > context.most_version_digits:
                digits = digits[:-1]
                pos -= 1
            version = int(digits) if digits else None
            if context.executes(version, bool(match["maria"])):
                open_executable += 1
            else:
                # To MySQL, MariaDB's are plain comments.
                pos = _skip_comment(sql, pos, nested=context.mariadb or not match["maria"])


class TokenStream:
    """Tokens with lookahead, and the basic operations of a parser."""

    __slots__ = ("_ahead", "_source")

    def __init__(self, sql: str, context: SqlContext = DEFAULT_CONTEXT) -> None:
        self._source = tokens(sql, context)
        self._ahead: list[Token] = []

    def peek(self, distance: int = 0) -> Token:
        """Return the token this many after the next one; END after the last one."""
        ahead = self._ahead
        while len(ahead) <= distance:
            ahead.append(next(self._source, END))
        return ahead[distance]

    def next(self) -> Token:
        """Consume one token; END if there is none left."""
        token = self.peek()
        del self._ahead[0]
        return token

    def at_end(self) -> bool:
        """Whether no tokens are left."""
        return self.peek().kind is TokenKind.END

    def at(self, *words: str) -> bool:
        """Whether these keywords or symbols come next."""
        return all(self.peek(index).word == word for index, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Consume these keywords or symbols if they come next, all or none."""
        if not self.at(*words):
            return False
        for _ in words:
            self.next()
        return True

    def accept_any(self, *words: str) -> str | None:
        """Consume one of these keywords or symbols, and return it."""
        word = self.peek().word
        if word and word in words:
            self.next()
            return word
        return None

    def expect(self, *words: str) -> None:
        """Consume these, or raise SchemaError."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def at_query(self) -> bool:
        """Whether a query comes next, in parentheses or not: SELECT, VALUES, TABLE, WITH."""
        depth = 0
        while self.peek(depth).word == "(":
            depth += 1
        word = self.peek(depth).word
        if word == "WITH":
            return self.peek(depth + 2).word != "VERSIONING"  # an option: WITH SYSTEM VERSIONING
        return word in ("SELECT", "VALUES", "TABLE")

    def skip_set_statement(self) -> frozenset[str]:
        """Skip MariaDB's ``SET STATEMENT variable = value, … FOR``, if it comes next.

        Return its words in upper case.
        """
        words = set()
        while self.at("SET", "STATEMENT") and self.peek(2).kind in (TokenKind.WORD, TokenKind.NAME):
            while not self.accept("FOR"):
                if self.at_end():
                    raise self.unexpected("FOR")
                if self.at("("):
                    self.skip_parentheses()
                else:
                    words.add(self.next().word)
        return frozenset(words)

    def skip_wait(self) -> None:
        """Skip MariaDB's ``WAIT n`` or ``NOWAIT`` after a table's name, if present."""
        if self.accept("WAIT"):
            self.integer()
        else:
            self.accept("NOWAIT")

    def name(self, what: str = "a name") -> str:
        """Consume a name, quoted or not; return it without letters beyond U+FFFF, as stored."""
        if self.peek().kind in (TokenKind.WORD, TokenKind.NAME):
            return _BEYOND_BMP.sub("?", self.next().text)
        raise self.unexpected(what)

    def string(self, what: str = "a string") -> str:
        """Consume a string literal; return its unescaped value."""
        if self.peek().kind is TokenKind.STRING:
            return self.next().text
        raise self.unexpected(what)

    def integer(self, what: str = "a number") -> int:
        """Consume a number without sign, fraction or exponent."""
        token = self.peek()
        if token.kind is TokenKind.NUMBER and token.text.isdigit():
            return int(self.next().text)
        raise self.unexpected(what)

    def qualified_name(self, default_database: str) -> tuple[str, str]:
        """Consume ``table`` or ``database.table``; ``.table`` is in the default database."""
        if self.accept("."):
            return default_database, self.name("a table name")
        first = self.name("a table name")
        if self.accept("."):
            return first, self.name("a table name")
        return default_database, first

    def column_name(self, what: str = "a column") -> str:
        """Consume ``column``, optionally after its table and database; return the last part.

        The server accepts the names of this very table only (sql/sql_yacc.yy, `field_ident`).
        """
        if self.accept("."):
            return self.name(what)
        name = self.name(what)
        while self.accept("."):
            name = self.name(what)
        return name

    def skip_parentheses(self) -> None:
        """Skip ``( … )`` with any content."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.next()
            if token.kind is TokenKind.END:
                raise SchemaError("a statement has a ( that is not closed")
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == "(") - (token.text == ")")

    def unexpected(self, expected: str) -> SchemaError:
        """Return the error for a token other than the expected one; the caller raises it."""
        token = self.peek()
        return SchemaError(f"expected {expected} in a statement, found {token.shown}")
