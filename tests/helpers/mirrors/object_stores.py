"""Object stores on the loopback interface, to which delta-rs writes.

Each runs in its own process: delta-rs holds the GIL during some of its requests, so a server in a
thread of the same process could not answer them.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import NamedTemporaryFile

import boto3

from helpers.servers.base import free_port
from helpers.waiting import wait_until

__all__ = ["ObjectStore", "s3_store"]

_REGION = "eu-central-1"
# Matches without color codes, which the server's log contains.
_REQUEST = re.compile(r"(?:GET|HEAD|PUT|POST|DELETE) /\S*")


@dataclass(frozen=True)
class ObjectStore:
    """A bucket or container.

    uri : without a trailing slash.
    options : delta-rs's storage options.
    log : the server's request log, one request per line.
    """

    uri: str
    options: Mapping[str, str]
    log: Path

    def requests(self) -> list[str]:
        """Return all requests so far: method and path."""
        return _REQUEST.findall(self.log.read_text())


@contextmanager
def s3_store(*, checks_keys: bool = False) -> Iterator[ObjectStore]:
    """Yield an S3 server with an empty bucket.

    checks_keys : the server checks access keys, and rejects the keys of the options.
    """
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    # The first request, which creates the bucket, is not checked.
    environment = os.environ | ({"INITIAL_NO_AUTH_ACTION_COUNT": "1"} if checks_keys else {})
    with (
        NamedTemporaryFile(suffix=".log") as log,
        Popen(command, env=environment, stdout=DEVNULL, stderr=log) as server,
    ):
        try:
            wait_until(lambda: _is_open(port), "the S3 server accepts connections")
            client = boto3.client(
                "s3",
                endpoint_url=endpoint,
                aws_access_key_id="key",
                aws_secret_access_key="secret",
                region_name=_REGION,
            )
            client.create_bucket(
                Bucket="lake", CreateBucketConfiguration={"LocationConstraint": _REGION}
            )
            yield ObjectStore(
                "s3://lake",
                {
                    "AWS_ENDPOINT_URL": endpoint,
                    "AWS_ACCESS_KEY_ID": "key",
                    "AWS_SECRET_ACCESS_KEY": "secret",
                    "AWS_REGION": _REGION,
                    "AWS_ALLOW_HTTP": "true",
                    "aws_conditional_put": "etag",
                },
                Path(log.name),
            )
        finally:
            server.terminate()


def _is_open(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
