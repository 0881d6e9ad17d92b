"""The documents compared with the files, code, errors and columns that they describe."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructType

from pyspark_mysqlbinlog import errors
from pyspark_mysqlbinlog.connector.source.schema import output_schema

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_main_documents_are_collected() -> None:
    names = {_name(path) for path in DOCUMENTS}
    assert names >= {"README.md", "CHANGELOG.md", "docs/index.md", "docs/reference/options.md"}


def test_generated_parts_of_documents_are_current() -> None:
    """If they are not, run `make docs` or `python docs/_hooks`."""
    checked = subprocess.run(
        [sys.executable, ROOT / "docs/_hooks", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_objects_in_python_api_reference_exist() -> None:
    text = (ROOT / "docs/reference/python-api.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(named) > 4
    for module, _, name in (each.rpartition(".") for each in named):
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"


def _prose(path: Path) -> str:
    """Return a document without its code blocks."""
    return _FENCE.sub("", path.read_text(encoding="utf-8"))


def _anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to a document's headings."""
    headings = (heading.lower() for heading in _HEADING.findall(_prose(path)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_links_in_documents_have_existing_targets(path: Path) -> None:
    for link in _LINK.findall(_prose(path)):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(target), f"{link}: {target.name} has {_anchors(target)}"


def test_every_document_is_reachable_from_the_readme() -> None:
    reached, new = set(), [ROOT / "README.md"]
    while new:
        path = new.pop()
        reached.add(path)
        links = (link.partition("#")[0] for link in _LINK.findall(_prose(path)))
        linked = {(path.parent / link).resolve() for link in links if link.endswith(".md")}
        new += (linked & {*DOCUMENTS}) - reached - {*new}
    assert set(DOCUMENTS) <= reached, set(DOCUMENTS) - reached


def test_site_navigation_lists_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    pages = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", navigation, re.MULTILINE)
    found = [_name(path).removeprefix("docs/") for path in DOCUMENTS if path.parent != ROOT]
    assert sorted(pages) == sorted(found)


def _python_blocks() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for found in _FENCE.finditer(text):
            if found[1] == "python":
                line = text.count("\n", 0, found.start()) + 2
                yield f"{_name(path)}:{line}", found[2]


@pytest.mark.parametrize(("place", "code"), [*_python_blocks()])
def test_python_blocks_in_documents_compile(place: str, code: str) -> None:
    compile(code, place, "exec")


def _option_names(code: str) -> set[str]:
    """Return the names that a code block gives to ``option("…", …)`` and ``options(…)``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "option" and isinstance(node.args[0], ast.Constant):
            names.add(str(node.args[0].value))
        elif node.func.attr == "options":
            names.update(keyword.arg for keyword in node.keywords if keyword.arg)
    # Options of Spark's sinks.
    return names - {"checkpointLocation", "truncate"}


def test_options_in_python_blocks_are_documented() -> None:
    options = (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", options, re.MULTILINE))
    used = {name: place for place, code in _python_blocks() for name in _option_names(code)}
    assert len(used) >= 4
    unknown = {name: place for name, place in used.items() if name not in documented}
    assert not unknown, unknown


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_errors_named_in_documents_exist(path: Path) -> None:
    named = set(re.findall(r"`(\w+Error)`", path.read_text(encoding="utf-8")))
    assert named <= set(errors.__all__), named - set(errors.__all__)


def test_every_error_is_explained_in_error_reference() -> None:
    table = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`(\w+Error)`", row)}
    classes = {name: getattr(errors, name) for name in errors.__all__ if name != "cause_of"}
    # A base class is explained by its subclasses, unless it is raised itself.
    branches = {base.__name__ for error in classes.values() for base in error.__bases__}
    branches -= {"MySQLBinlogError", "ConnectionFailedError", "FormatError"}
    branches -= {"SchemaError", "ServerError"}
    assert set(classes) - branches <= explained


def _table(section: str) -> dict[str, str]:
    """Return name -> type from the first table of a section of docs/reference/output-schema.md."""
    text = (ROOT / "docs/reference/output-schema.md").read_text(encoding="utf-8")
    after = re.split(rf"^#+ {section}$", text, flags=re.MULTILINE)[1]
    first = re.search(r"(?:^\|.*\n)+", after, re.MULTILINE)
    assert first is not None
    rows = [line.split("|") for line in first[0].splitlines()[2:]]
    return {row[1].strip(" `"): row[2].strip(" `") for row in rows}


def test_documented_output_columns_equal_output_schema() -> None:
    columns = output_schema(StringType())
    built = {field.name: field.dataType.simpleString() for field in columns}
    documented = _table("Columns")
    # These types depend on the payload, so the document describes them in words.
    assert built.pop("before") == built.pop("after") == "string"
    assert list(documented) == list(columns.fieldNames())
    assert {name: documented[name] for name in built} == built
    for name in ("seq", "source"):
        struct = columns[name].dataType
        assert isinstance(struct, StructType)
        fields = [(field.name, field.dataType.simpleString()) for field in struct]
        assert list(_table(name).items()) == fields


def _rules() -> list[str]:
    """Return the last column of the table of rules in docs/contributing/design-rules.md."""
    text = (ROOT / "docs/contributing/design-rules.md").read_text(encoding="utf-8")
    section = text.split("## Rules, and why")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [row[2].rstrip(" |") for row in rows[1:]]


def test_code_named_in_design_rules_exists() -> None:
    package = ROOT / "pyspark_mysqlbinlog"
    named = re.findall(r"`([^`]+)`", " ".join(_rules()))
    assert len(named) > 20
    for name in named:
        module, _, function = name.partition(".")
        if function == "py":
            assert (package / name).exists(), name
            continue
        files = list(package.rglob(f"{module}.py"))
        if not files:
            # A method without its module, which is named before it.
            files, function = list(package.rglob("*.py")), module
        texts = [file.read_text(encoding="utf-8") for file in files]
        assert any(f"def {function}(" in text for text in texts) or not function, name
