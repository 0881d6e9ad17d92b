"""The state of a row at a position, from the images of its changes before and after."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_mysqlbinlog.connector.verification.logged_states import Image, LoggedStates

_KEYS = [b"a", b"b", b"c"]


@pytest.mark.parametrize("seed", range(50))
def test_logged_row_states_equal_those_of_a_replayed_table(seed: int) -> None:
    random = Random(seed)
    rows: dict[bytes, bytes] = {key: b"0" for key in _KEYS if random.random() < 0.6}
    place = random.randrange(12)
    images: list[tuple[bytes, Image]] = []
    at_place = dict(rows)
    for at in range(12):
        if at == place:
            at_place = dict(rows)
        # Several changes of one transaction have one position.
        for number in range(random.choice([1, 1, 3])):
            key = random.choice(_KEYS)
            if key in rows:
                images.append((key, Image(at, number, False, rows.pop(key))))
                if random.random() < 0.3:
                    continue
                # An update of the key is a change of two keys.
                free = [other for other in _KEYS if other not in rows]
                key = random.choice([key, random.choice(free)])
            rows[key] = random.choice([b"0", b"1", b"2"])
            images.append((key, Image(at, number, True, rows[key])))
    random.shuffle(images)
    states = LoggedStates(place)
    states.add_all([key for key, _ in images], [image for _, image in images])
    for key in _KEYS:
        assert states.is_changed(key) == any(other == key for other, _ in images)
        if states.is_changed(key):
            assert states.at_place(key) == at_place.get(key)


def test_statement_without_row_images_marks_every_row_as_changed() -> None:
    states = LoggedStates(5)
    assert not states.is_changed(b"a")
    states.is_unknown = True
    assert states.is_changed(b"a")
