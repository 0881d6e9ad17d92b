"""Which databases the account can see all of.

information_schema leaves out what the account has no privilege on, so a table that is not in it may
be there all the same. Only an account that may SELECT from every table of a database knows what the
database does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["sees_all_of"]

_GLOBAL = (
    "SELECT 1 FROM information_schema.USER_PRIVILEGES"
    " WHERE GRANTEE = %s AND PRIVILEGE_TYPE = 'SELECT'"
)
_DATABASES = (
    "SELECT TABLE_SCHEMA, MAX(PRIVILEGE_TYPE = 'SELECT') FROM information_schema.SCHEMA_PRIVILEGES"
    " WHERE GRANTEE = %s GROUP BY TABLE_SCHEMA"
)


def sees_all_of(client: ReplicaClient, *, case_sensitive: bool) -> Callable[[str], bool]:
    """Database -> whether no table of it, nor the database, can be hidden from the account.

    Privileges that come by a role are not seen here: then nothing is taken to be known.
    """
    ((account,),) = client.query("SELECT CURRENT_USER()")
    user, _, host = str(account).rpartition("@")
    grantee = f"'{user}'@'{host}'"
    if client.query(_GLOBAL, [grantee]):
        return lambda _: True
    grants = [
        (_like(str(pattern), case_sensitive=case_sensitive), bool(may_select))
        for pattern, may_select in client.query(_DATABASES, [grantee])
    ]

    def sees(database: str) -> bool:
        # The server takes one grant of those that match, which of them is its affair.
        matching = [may_select for like, may_select in grants if like.fullmatch(database)]
        return bool(matching) and all(matching)

    return sees


def _like(pattern: str, *, case_sensitive: bool) -> re.Pattern[str]:
    """A grant's database: LIKE's ``%`` and ``_``, unless a backslash is in front of them."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(
        wild.get(part) or re.escape(part.removeprefix("\\") if len(part) > 1 else part)
        for part in parts
    )
    return re.compile(text, re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE)
