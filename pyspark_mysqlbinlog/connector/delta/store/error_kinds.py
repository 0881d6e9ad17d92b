"""Decides from an error's text whether the store or the process failed, and not one table.

The text of an error of delta-rs, Spark or the JVM is a chain of messages, `outer: inner: innermost`
or one per line, and contains names and values of tables: `No field named t.cancelled_at`. So no
word is searched in it. Everything that may be a name or a value is removed: text in quotes, paths,
tables of values, stack traces. In the rest, the *beginning* of each message is compared with known
beginnings of object_store, delta-rs, Spark and exception classes of the JVM. A code of the
operating system, `(os error 28)`, decides by the list of codes that concern a whole store. Errors
of a catalog that denies access, or cannot be reached, count as the store's.

Unknown errors count as the table's.
"""

from __future__ import annotations

import errno
import os
import re

__all__ = ["PATHS", "is_of_catalog", "is_of_store", "os_error_codes", "without_traces"]

# Codes of the operating system: disk, mount, network, limits of the process. Codes of one file,
# such as ENAMETOOLONG, ENOENT and ENOTDIR, are left out.
_NAMES_OF_STORE_CODES = """
    EIO ENXIO ENODEV EROFS ENOSPC EDQUOT ESTALE EREMOTEIO ENOMEDIUM EBUSY EACCES EPERM ENOLCK
    ENOLINK ENOMEM ENFILE EMFILE EAGAIN EINTR EPIPE ECANCELED ECOMM EPROTO ENETDOWN ENETUNREACH
    ENETRESET ECONNABORTED ECONNRESET ECONNREFUSED ENOBUFS ENOTCONN ESHUTDOWN ETIMEDOUT EHOSTDOWN
    EHOSTUNREACH
"""
_STORE_CODES = {
    code: os.strerror(code)
    for code, name in errno.errorcode.items()
    if name in _NAMES_OF_STORE_CODES.split()
}
_OS_ERROR = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+),")
# The JVM has only the text of the code, at the end of a line.
_STRERRORS = "|".join(re.escape(text) for text in _STORE_CODES.values())
_STRERROR = re.compile(rf"(?:^|: |\()(?:{_STRERRORS})\)?\s*$", re.MULTILINE)

# Stack frames show a place in Spark, not an error: each has been in `java.util.concurrent`.
_FRAMES = re.compile(
    r"^\s+(?:at .*|\.\.\. \d+ more)$|^Driver stacktrace:$|stack backtrace:[\s\S]*", re.MULTILINE
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# Paths contain names of tables and values of rows.
PATHS = re.compile(r"\S*/\S*")
# An apostrophe inside a word is not a quote.
_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`")
# A violated constraint is the table's error, and shows the row.
_ROW = re.compile(r"(?:violated by row with values|Preview of invalid data):[\s\S]*")
_BETWEEN_MESSAGES = re.compile(r"\n|: ?| -> | - |↳")

_STATUS = r"(?:401|403|407|408|429|5\d\d)\b"
_MESSAGES = re.compile(
    # object_store, and the HTTP client below it. Its errors of local files have a code.
    r"Generic (?!DeltaTable|LocalFileSystem|InMemory|error\b)\w+ error\b"
    r"|The operation lacked (?:the necessary privileges|valid authentication credentials)"
    rf"|Client error with status {_STATUS}|Error after \d+ retries|HTTP error\b"
    rf"|{_STATUS} [A-Z][a-z]+"  # after `Server returned non-2xx status code: `
    r"|error (?:sending request|trying to connect|reading a body from connection)"
    r"|tcp connect error|dns error|operation timed out|request or response body error"
    r"|connection (?:error|closed before message completed)"
    r"|(?:the )?credentials? provider|(?:an error occurred while )?loading credentials"
    # The process.
    r"|Resources exhausted|Out of memory|Java heap space|GC overhead limit exceeded|Metaspace$"
    r"|unable to create (?:new )?native thread|task \d+ was cancelled"
    # A stopping Spark, a stopped query, lost executors.
    r"|Job (?:\d+ )?(?:was )?cancelled|Cannot call methods on a stopped SparkContext"
    r"|(?:Job \S+ cancelled because )?SparkContext (?:was|has been) shut ?down"
    r"|ExecutorLostFailure|Executor heartbeat timed out|FetchFailed\(|TaskKilled"
    r"|Futures timed out after|Failed to connect to |Connection (?:from|to) \S+ (?:closed|refused)"
    r"|status = StatusCode\.(?:UNAVAILABLE|CANCELLED|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED"
    r"|UNAUTHENTICATED|PERMISSION_DENIED)|\[INVALID_HANDLE"
    # Other writers.
    r"|\[DELTA_(?:CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)"
    # Classes of the JVM: the network, the stores' clients, memory, interrupted threads.
    r"|java\.net\.(?!URISyntax|MalformedURL)\w+Exception|javax\.net\.ssl\.\w+|io\.netty\.[\w.$]+"
    r"|java\.io\.InterruptedIOException|java\.nio\.channels\.Closed\w+"
    r"|java\.nio\.file\.AccessDeniedException|java\.lang\.InterruptedException"
    r"|java\.lang\.OutOfMemoryError|java\.util\.concurrent\.(?:Timeout|Cancellation)Exception"
    r"|(?:com\.amazonaws|software\.amazon|com\.azure|com\.microsoft\.azure|com\.google\.(?:cloud|api)"
    r"|org\.apache\.hadoop\.(?:fs\.(?:s3a|azure|azurebfs)|ipc|hdfs|security|net)"
    r"|org\.apache\.http)\.[\w.$]+(?:Exception|Error)\b"
    r"|(?:org\.apache\.spark\.sql\.delta|io\.delta\.exceptions|delta\.exceptions)\."
    r"(?:Concurrent\w+|(?:Delta)?(?:MetadataChanged|ProtocolChanged))Exception"
    r"|org\.apache\.spark\.(?:TaskKilled|shuffle\.FetchFailed)Exception"
)
# Catalogs: Unity Catalog, Databricks, a Hive metastore with its authorization, Ranger.
_OF_CATALOG = re.compile(
    r"\[?(?:PERMISSION_DENIED|INSUFFICIENT_PERMISSIONS|UNAUTHENTICATED)\b"
    r"|No privilege\b|Could not connect to meta store|Unable to instantiate \S*MetaStoreClient"
    r"|[\w.$]*\b(?:Hive)?(?:AccessControl|Authorization)Exception\b"
    r"|org\.apache\.thrift\.transport\.\w+Exception"
)
_UNITY_ANSWER = re.compile(rf"io\.unitycatalog\.[\w.$]*ApiException\b[^\n]*?: {_STATUS}")
# A store's error codes, except those about one object.
_ANSWER = re.compile(r"<Code>(?!NoSuchKey|KeyTooLong|InvalidURI|OutOfRange|InvalidResourceName)\w+")
_OF_ONE_OBJECT = re.compile(r"\b(?:KeyTooLong\w*|InvalidURI|OutOfRangeInput|InvalidResourceName)\b")


def without_traces(text: str) -> str:
    """Return the text of an error without stack traces and colours."""
    return _FRAMES.sub("", _ANSI.sub("", text))


def os_error_codes(text: str) -> set[int]:
    """Return the codes of the operating system in an error of Rust."""
    return {int(first or second) for first, second in _OS_ERROR.findall(_without_names(text))}


def is_of_catalog(text: str) -> bool:
    """Return whether an error with this text, without stack traces, is that of a whole catalog."""
    stripped = _without_names(text)
    messages = (message.strip() for message in _BETWEEN_MESSAGES.split(stripped))
    return _UNITY_ANSWER.search(stripped) is not None or any(map(_OF_CATALOG.match, messages))


def is_of_store(text: str) -> bool:
    """Return whether an error with this text, without stack traces, is the store's or process's."""
    if is_of_catalog(text):
        return True
    if not os_error_codes(text).isdisjoint(_STORE_CODES):
        return True
    stripped = _without_names(text)
    if _OF_ONE_OBJECT.search(stripped):
        return False
    messages = (message.strip() for message in _BETWEEN_MESSAGES.split(stripped))
    return (
        _ANSWER.search(stripped) is not None
        or _STRERROR.search(stripped) is not None
        or any(map(_MESSAGES.match, messages))
    )


def _without_names(text: str) -> str:
    """Remove what may be a name or a value, but not the message of an EIO, which has a slash."""
    text = _ROW.sub("", text).replace(" Input/output error", "\nInput\\output error")
    text = _QUOTED.sub("''", text.replace("</", "<"))
    return PATHS.sub("", text).replace("Input\\output", "Input/output")
