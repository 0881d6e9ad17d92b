"""The options of masks and row filters: accepted values, and errors without the secret."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.decoder.transforms.masks import Mask
from pyspark_mysqlbinlog.errors import OptionError

SECRET = "a-secret-of-more-than-16-bytes"
GIVEN = {"host": "db", "user": "u", "tables": "shop.*", "payload": "json"}
HASHED = {"maskColumns": '{"shop.t.email": "hash"}', "maskSecret": SECRET}
FILTERED = {"rowFilter": '{"shop.t": "a = 1"}'}


def options(**more: str) -> Options:
    return parse_options(GIVEN | more)


def test_first_mask_pattern_that_matches_a_column_applies() -> None:
    masks = '{"shop.t.email": "redact", "*.*.email": "hash", "/shop\\\\.[tu]\\\\.note/": "hash"}'
    found = options(maskColumns=masks, maskSecret=SECRET).transforms(True)
    assert found is not None
    assert found.mask_of("shop", "t", "Email") == Mask("redact")
    assert found.mask_of("shop", "u", "email") == Mask("hash")
    assert found.mask_of("shop", "u", "note") == Mask("hash")
    assert found.mask_of("shop", "u", "other") is None
    assert found.named_tables == {("shop", "t")}


def test_mask_secret_is_hidden_in_reprs_and_kept_by_copies(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    in_file = options(maskColumns=HASHED["maskColumns"], maskSecretFile=str(file))
    for given in (options(**HASHED), in_file):
        copy = pickle.loads(pickle.dumps(given))
        for shown in (given, copy, given.transforms(True)):
            assert SECRET not in repr(shown)
        assert copy.transforms(True).secret == SECRET.encode()
    assert in_file.transforms_hash == options(**HASHED).transforms_hash


def test_transforms_hash_differs_for_each_option_and_hides_the_secret() -> None:
    given = [
        HASHED,
        HASHED | {"maskSecret": SECRET + "2"},
        HASHED | {"maskColumns": '{"shop.t.email": "hash", "shop.t.b": "redact"}'},
        HASHED | FILTERED,
        FILTERED,
        {"maskColumns": '{"shop.t.email": "redact"}'},
    ]
    hashes = [options(**each).transforms_hash for each in given]
    assert len({*hashes}) == len(given)
    assert all(each and SECRET not in each for each in hashes)
    assert not options().transforms_hash
    assert not options().has_transforms


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"maskColumns": "email"}, "expected a JSON object of columns and masks"),
        ({"maskColumns": '{"a.b.c": "hash", "a.b.c": "redact"}'}, "expected a JSON object"),
        ({"maskColumns": '{"email": "redact"}'}, "only a part of database.table.column"),
        ({"maskColumns": '{"a.b.c": "md5"}'}, "a.b.c: expected hash, redact"),
        ({"maskColumns": HASHED["maskColumns"]}, "option maskSecret is missing"),
        (HASHED | {"maskSecret": "S3CRET-short"}, "at least 16 bytes"),
        ({"maskSecret": SECRET}, "maskSecret has no effect"),
        ({"maskColumns": '{"a.b.c": "redact"}', "maskSecret": SECRET}, "has no effect"),
        (HASHED | {"maskSecretFile": "f"}, "maskSecret and maskSecretFile cannot be combined"),
        (HASHED | {"maskSecret": "", "maskSecretFile": "/none"}, "cannot be combined"),
        (
            {"maskColumns": HASHED["maskColumns"], "maskSecretFile": "/none"},
            "option maskSecretFile: '/none' can't be read",
        ),
        ({"rowFilter": '{"shop.*": "a = 1"}'}, "expected the name of one table"),
        ({"rowFilter": '{"other.t": "a = 1"}'}, "other.t is not among the captured tables"),
        ({"rowFilter": '{"shop.t": "a"}', "operations": "insert"}, "add delete"),
        ({"rowFilter": '{"shop.t": "a ="}'}, "the condition of shop.t: expected a text"),
        (FILTERED | {"snapshotWhere": '{"shop.t": "a"}'}, "snapshotWhere and rowFilter"),
        (FILTERED | {"onUnknownSchema": "positional"}, "positional and rowFilter"),
    ],
)
def test_invalid_transform_options_are_rejected_without_showing_the_secret(
    more: dict[str, str], error: str
) -> None:
    with pytest.raises(OptionError) as caught:
        options(**more)
    assert error in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "S3CRET" not in str(caught.value)
    assert caught.value.__context__ is None
