"""Checks of the place where a mirror writes its Delta tables, with delta-rs.

The storage is checked by use: a small Delta table with a name of its own is written there and
removed. Two writers that have read the same version write the next one. If the store's conditional
writes work, the second one notices the first, and writes the version after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs

from pyspark_mysqlbinlog.connector.delta.query.table_failures import store_error
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.places.names import (
    NameTemplate,
    check_names_distinct,
    is_catalog_name,
)
from pyspark_mysqlbinlog.connector.delta.store.places.paths import (
    PathTemplate,
    check_paths_disjoint,
)
from pyspark_mysqlbinlog.connector.delta.sync.constants import STOPPED
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import source_log
from pyspark_mysqlbinlog.connector.doctor.examined import ExaminedServer
from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop, warning
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import MirrorError, MySQLBinlogError, OptionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeTarget

__all__ = ["ExaminedNames", "ExaminedTarget", "target_paths", "target_storage", "target_tables"]

_SEE = "read docs/how-to/object-stores.md"


@dataclass(frozen=True, slots=True)
class ExaminedTarget:
    """The target of a mirror.

    storage : the storage options of delta-rs.
    """

    template: PathTemplate
    storage: Mapping[str, str]

    @classmethod
    def parse(cls, target: str, storage: Mapping[str, str]) -> Self | ExaminedNames:
        """Check a target as `DeltaMirror` takes it; OptionError describes the fault."""
        if is_catalog_name(target):
            return ExaminedNames(NameTemplate.parse(target))
        return cls(PathTemplate.parse(target), storage)

    @property
    def root(self) -> str:
        """The folder, or URI, that all Delta tables are in."""
        return self.template.template.partition("{")[0].rpartition("/")[0] or (
            "/" if self.template.template.startswith("/") else "."
        )


@dataclass(frozen=True, slots=True)
class ExaminedNames:
    """The target of a mirror whose Delta tables have names in a catalog of Spark's."""

    template: NameTemplate


def target_storage(target: ExaminedTarget | ExaminedNames) -> Finding:
    """The storage can be written, and its conditional writes work."""
    if isinstance(target, ExaminedNames):
        return warning(
            f"not checked: only Spark reaches the catalog {target.template.catalog!r}",
            advice="pyspark-mysqlbinlog ingest … --available-now shows whether it can be written",
        )
    try:
        from deltalake import DeltaTable, write_deltalake
    except ImportError:
        return warning("not checked: the package deltalake is not installed", advice=_INSTALL)
    rows = pa.table({"n": pa.array([1])})
    storage = dict(target.storage)
    try:
        with _probe(target) as uri:
            write_deltalake(uri, rows, storage_options=storage)
            both = [DeltaTable(uri, storage_options=storage) for _ in range(2)]
            for each in both:
                write_deltalake(each, rows, mode="append")
            version = DeltaTable(uri, storage_options=storage).version()
    except MySQLBinlogError as error:
        return stop(str(error))
    except Exception as error:  # noqa: BLE001 (the finding shows it)
        shown = store_error(error)
        text = " ".join(str(shown).split())
        return stop(f"{target.root} cannot be written: {text}", advice=_CREDENTIALS)
    if version != len(both):
        return stop(
            f"two writers of {target.root} replaced each other's commit: the store ignores"
            " conditional writes, and rows would be lost",
            advice="use a store with conditional writes: --storage-option aws_conditional_put=etag",
        )
    return ok(f"{target.root} can be written, with conditional writes")


_INSTALL = "pip install deltalake"
_CREDENTIALS = (
    "correct --target, the permissions of the folder, or --storage-option (credentials, region,"
    f" endpoint); {_SEE}"
)


def target_paths(target: ExaminedTarget | ExaminedNames, server: ExaminedServer) -> Finding:
    """Each table has a path or name of its own."""
    try:
        if isinstance(target, ExaminedNames):
            check_names_distinct(server.names, target.template)
        else:
            check_paths_disjoint(server.names, [target.template])
    except OptionError as error:
        return stop(str(error), advice="set --target with {database} and {table} in it")
    kind = "names" if isinstance(target, ExaminedNames) else "paths"
    return ok(f"different {kind}: {len(server.names):,}")


def target_tables(target: ExaminedTarget | ExaminedNames, server: ExaminedServer) -> Finding | None:
    """Existing Delta tables at the paths are those of a mirror of this server."""
    if isinstance(target, ExaminedNames):
        return None
    try:
        from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine
    except ImportError:
        return warning("not checked: the package deltalake is not installed", advice=_INSTALL)
    try:
        log = _log_of(server)
    except MySQLBinlogError:
        # The checks of the binlog have found it.
        return None
    errors, doubts, existing = list[str](), list[str](), 0
    engines = [DeltalakeEngine(target.storage, soft_delete=each) for each in (False, True)]
    for table in server.names:
        name, uri = ".".join(table), target.template.render(table)
        try:
            found = _opened([engine.target(uri) for engine in engines])
            if found is None:
                if _has_files(uri, target.storage):
                    doubts.append(f"{uri} has files, but no Delta table: VACUUM removes them")
                continue
            existing += 1
            known = source_log(found, name, log)
            reason = found.properties().get(STOPPED)
        except MirrorError as error:
            errors.append(str(error))
        except Exception as error:  # noqa: BLE001 (the finding shows it)
            doubts.append(f"{uri} cannot be opened: {' '.join(str(store_error(error)).split())}")
        else:
            if known is not None and not known.startswith(log.of_server):
                doubts.append(f"{uri} has rows of another server: a snapshot replaces them")
            if reason:
                doubts.append(f"replication of {name} is stopped: {reason}")
    advice = "set another --target, or remove these folders"
    if errors:
        return stop(errors, advice=advice)
    if doubts:
        return warning("; ".join(doubts), advice=advice)
    return ok(f"{existing:,} of {len(server.names):,} Delta tables exist")


def _opened(targets: Iterable[DeltalakeTarget]) -> DeltalakeTarget | None:
    """Return the target with the Delta table's setting of soft deletes; None without a table."""
    for target in targets:
        try:
            return None if target.columns() is None else target
        except OptionError:
            # The Delta table was created with the other setting of soft deletes.
            continue
    return None


def _log_of(server: ExaminedServer) -> LogIdentity:
    """Return the server's binlog, as a Delta table records it."""
    uuid, number = server.client.server_uuid(), int(server.variable("server_id") or 0)
    return LogIdentity.of_file(uuid, number, 0, current_position(server.client).file)


def _local(uri: str) -> Path | None:
    """Return the folder of a local URI; None for an object store."""
    path = uri.removeprefix("file://")
    return None if "://" in path else Path(path)


def _has_files(uri: str, storage: Mapping[str, str]) -> bool:
    folder = _local(uri)
    if folder is not None:
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    return bool(_files(uri, storage)[1])


def _files(uri: str, storage: Mapping[str, str]) -> tuple[Any, list[str]]:
    """Return a store, and all files below a URI of it."""
    from deltalake.fs import DeltaStorageHandler

    # pyarrow accepts it as one of its own handlers; the stubs have no common class.
    handler: Any = DeltaStorageHandler(uri, dict(storage))
    store = pa.fs.PyFileSystem(handler)
    found = store.get_file_info(pa.fs.FileSelector("", recursive=True, allow_not_found=True))
    return store, [each.path for each in found if each.is_file]


@contextmanager
def _probe(target: ExaminedTarget) -> Iterator[str]:
    """Return the URI of a new Delta table, which is removed at the end."""
    uri = f"{target.root.rstrip('/')}/mysqlbinlog-doctor-{uuid4().hex}"
    folder = _local(uri)
    if folder is None:
        try:
            yield uri
        finally:
            store, files = _files(uri, target.storage)
            for file in files:
                store.delete_file(file)
        return
    # Folders that the probe creates are removed with it.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield str(folder)
    finally:
        shutil.rmtree(missing[-1], ignore_errors=True)
