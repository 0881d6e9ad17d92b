"""The words that docs, docstrings, comments and messages avoid (docs/contributing/style.md)."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    path
    for folder in ("pyspark_mysqlbinlog", "benchmarks", "examples")
    for kind in ("*.py", "*.pyi")
    for path in sorted((ROOT / folder).rglob(kind))
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
KERNEL = [
    path
    for kind in ("*.hpp", "*.pyx", "*.pxd")
    for path in sorted((ROOT / "pyspark_mysqlbinlog").rglob(kind))
]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

# Expression that finds a discouraged word -> what to write instead.
INSTEAD = {
    r"anew": "again",
    r"nobody|whoever": "name the actor, or use the passive",
    r"behind": "after; behind is for lag only",
    r"in front of": "before",
    r"in step": "in sync",
    r"by itself": "automatically, alone",
    r"go(?:es)? on": "continue, resume",
    r"side by side": "in parallel",
    r"tells|told by|knows of no": "contain, show, record, report",
    r"br(?:ings?|ought) in": "apply",
    r"comes? again": "is replayed, is sent again",
    r"pass(?:es|ed)? over": "skip",
    r"look(?:s|ed) at|looked for": "check, inspect, search",
    r"in vain|for ever|seldom|mend(?:s|ed)?": "a modern word",
    r"(?<!-)our|ours|us(?!-)|we": "name the software",
    r"twins?": "reference implementation, compiled kernel",
    r"whole numbers?": "integer",
}
_FOUND = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
# (file, part of a line in it) -> why the word is correct there.
ALLOWED = {
    ("docs/contributing/style.md", ""): "it quotes the words",
    ("pyspark_mysqlbinlog/connector/tail/lag.py", "lag behind its server"): "lag",
    ("pyspark_mysqlbinlog/protocol/server/server_errors.py", "while this stream was behind"): "lag",
    ("docs/explanation/delta-mirror-internals.md", "if the mirror is behind"): "lag",
    ("benchmarks/workload/orders.py", "if nobody answers"): "text of the test data",
    ("docs/how-to/initial-snapshot.md", "behind the binlog"): "lag",
    ("docs/how-to/troubleshoot.md", "the query is behind"): "lag",
    ("docs/how-to/tune.md", "fall behind the binlog"): "lag",
    ("docs/reference/errors.md", "the stream was behind"): "lag",
    ("docs/reference/glossary.md", "delivery is behind"): "lag",
}
# From Python 3.12 on, the text of an f-string has a token type of its own.
_PROSE = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
# Comments, strings and character literals of C++ and of Cython.
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_CPP = re.compile(rf"//[^\n]*|/\*.*?\*/|{_STRING}|'(?:[^'\\\n]|\\.[0-9a-fA-F]*)'", re.DOTALL)
_CYTHON = re.compile(rf'#[^\n]*|""".*?"""|{_STRING}|' + r"'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a module, with their first line numbers."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            # A string without a space is a name.
            if token.type in _PROSE and " " in token.string:
                yield token.start[0], re.sub(r"\{[^{}]*\}", "{}", token.string)


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a test module; its other strings are data."""
    for number, text in _texts(path):
        if text.startswith(("#", '"""')):
            yield number, text


def _kernel_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a source in C++ or Cython, with their first lines."""
    source = path.read_text(encoding="utf-8")
    for found in (_CPP if path.suffix == ".hpp" else _CYTHON).finditer(source):
        # A string without a space is a name.
        if " " in found[0]:
            yield source.count("\n", 0, found.start()) + 1, found[0]


def _found(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that contain one of the words outside code."""
    plain = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for number, line in enumerate(plain.splitlines(), first):
        if _FOUND.search(line):
            yield number, line.strip()


def _unexpected(path: Path, texts: Iterator[tuple[int, str]]) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    allowed = [part for file, part in ALLOWED if file == name]
    return [
        f"{name}:{number}: {line}"
        for first, text in texts
        for number, line in _found(text, first)
        if not any(part in line for part in allowed)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_have_no_discouraged_words(path: Path) -> None:
    assert _unexpected(path, iter([(1, path.read_text(encoding="utf-8"))])) == []


def test_docstrings_comments_and_messages_have_no_discouraged_words() -> None:
    assert [line for path in MODULES for line in _unexpected(path, _texts(path))] == []


def test_docstrings_and_comments_of_tests_have_no_discouraged_words() -> None:
    assert len(TESTS) > 300
    assert [line for path in TESTS for line in _unexpected(path, _comments(path))] == []


def test_comments_and_messages_of_the_kernel_have_no_discouraged_words() -> None:
    texts = [(path, [*_kernel_texts(path)]) for path in KERNEL]
    assert sum(len(each) for _, each in texts) > 500
    assert [line for path, each in texts for line in _unexpected(path, iter(each))] == []


def test_allowed_uses_of_discouraged_words_are_few_and_present() -> None:
    assert len(ALLOWED) <= 30
    for file, part in ALLOWED:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert any(part in line for line in text.splitlines() if _FOUND.search(line)), (file, part)


@pytest.mark.parametrize(
    ("name", "source", "lines"),
    [
        ("a.hpp", "int a = behind;  // the row behind it\n/* it goes on,\n   anew */\n", [1, 2, 3]),
        ("a.hpp", 'if (at == \'"\') anew = 1;\nfail("x", "a row behind it");', [2]),
        ("a.pyx", '"""One line.\n\nThe row behind it.\n"""\nbehind = 1  # begun anew\n', [3, 5]),
        ("a.pyx", 'fail(\'"\', "it goes on")\nanew = behind\n', [1]),
    ],
)
def test_discouraged_words_in_the_kernel_are_found(
    tmp_path: Path, name: str, source: str, lines: list[int]
) -> None:
    path = tmp_path / name
    path.write_text(source, "utf-8")
    found = [at for first, text in _kernel_texts(path) for at, _ in _found(text, first)]
    assert found == lines


@pytest.mark.parametrize("text", ["the row behind it", "Nobody reads it", "# begun anew"])
def test_discouraged_words_in_prose_are_found(text: str) -> None:
    assert [*_found(text, 1)] == [(1, text)]


def test_discouraged_words_in_code_are_ignored() -> None:
    assert [*_found("a `behind` b\n```\nanew\n```\n", 1)] == []
