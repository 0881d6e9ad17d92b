"""`doctor` checks the storage of a mirror by writing to it, and leaves no files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, PyFileSystem

from helpers.mirrors.object_stores import ObjectStore, s3_store
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.mirror import mirror_options
from pyspark_mysqlbinlog.connector.delta.store.places.paths import PathTemplate
from pyspark_mysqlbinlog.connector.doctor.examination import examine
from pyspark_mysqlbinlog.connector.doctor.target_checks import ExaminedTarget, target_storage
from pyspark_mysqlbinlog.connector.options.parse import parse_options

# Errors of the store are not retried.
QUICK = {"max_retries": "0", "timeout": "10s"}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with s3_store(checks_keys=False) as made:
        yield made


def _target(store: ObjectStore, uri: str, **options: str) -> ExaminedTarget:
    template = PathTemplate.parse(f"{uri}/{{database}}/{{table}}")
    return ExaminedTarget(template, dict(store.options) | QUICK | options)


def test_storage_check_leaves_a_writable_bucket_empty(store: ObjectStore) -> None:
    found = target_storage(_target(store, f"{store.uri}/lake"))
    assert found.status == "ok", found
    handler = DeltaStorageHandler(store.uri, dict(store.options))
    left = PyFileSystem(handler).get_file_info(FileSelector("", recursive=True))
    assert [each.path for each in left if each.is_file] == []


@pytest.mark.parametrize(
    ("uri", "options", "words"),
    [
        ("s3://nope", {}, "NoSuchBucket"),
        ("s3://lake", {"aws_conditional_put": "disabled"}, "cannot be written"),
        ("s3://lake", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "cannot be written"),
    ],
)
def test_storage_check_reports_an_unusable_object_store(
    store: ObjectStore, uri: str, options: dict[str, str], words: str
) -> None:
    found = target_storage(_target(store, uri, **options))
    assert found.status == "stop"
    assert words in found.found
    assert "--storage-option" in found.advice


def test_storage_check_reports_rejected_access_keys() -> None:
    with s3_store(checks_keys=True) as store:
        found = target_storage(_target(store, store.uri))
    assert found.status == "stop"
    assert "InvalidAccessKeyId" in found.found or "403" in found.found


def test_storage_check_removes_the_folders_that_it_made(tmp_path: Path) -> None:
    template = PathTemplate.parse(f"{tmp_path}/a/b/{{database}}/{{table}}")
    assert target_storage(ExaminedTarget(template, {})).status == "ok"
    assert [*tmp_path.iterdir()] == []


def test_storage_check_keeps_existing_folders(tmp_path: Path) -> None:
    kept = tmp_path / "a" / "other"
    kept.mkdir(parents=True)
    template = PathTemplate.parse(f"{tmp_path}/a/{{table}}")
    assert target_storage(ExaminedTarget(template, {})).status == "ok"
    assert [*kept.parent.iterdir()] == [kept]


@pytest.mark.parametrize(
    ("template", "status", "said"),
    [
        ("main.{database}.{table}", "stop", "`T` and `{database}`.`t` would be one Delta table"),
        ("main.{database}.{table}_u", "ok", "different names: 1"),
    ],
)
def test_catalog_table_names_are_checked_without_the_catalog(
    live_server: Server, database: str, template: str, status: str, said: str
) -> None:
    tables = ["u"] if status == "ok" else ["T", "t"]
    live_server.execute(
        *(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)" for name in tables), database=database
    )
    options = parse_options(mirror_options(live_server.options(tables=f"{database}.*")))
    found = {each.check: each for each in examine(options, template)}
    assert found["target storage"].status == "warning"
    assert "only Spark reaches the catalog 'main'" in found["target storage"].found
    assert found["target paths"].status == status
    assert said.replace("{database}", database) in found["target paths"].found
    assert "target tables" not in found


@pytest.mark.parametrize(
    ("template", "root"),
    [
        ("/lake/{database}/{table}", "/lake"),
        ("/{database}/{table}", "/"),
        ("/lake/shop_{table}", "/lake"),
        ("./lake/{table}", "./lake"),
        ("{database}/{table}", "."),
        ("s3://lake/{database}/{table}", "s3://lake"),
        ("file:///lake/{table}", "file:///lake"),
    ],
)
def test_target_root_is_the_folder_common_to_all_tables(template: str, root: str) -> None:
    assert ExaminedTarget(PathTemplate.parse(template), {}).root == root
