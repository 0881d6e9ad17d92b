"""How rows were at a position of the binlog, from the images of their changes around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Image", "LoggedStates"]


class Image(NamedTuple):
    """One side of a change, in the order of the binlog.

    Attributes
    ----------
    place : packed position of the change.
    row : its number there.
    is_after : whether the image shows the row after the change; otherwise before it.
    digest : of the row.
    """

    place: int
    row: int
    is_after: bool
    digest: bytes


@dataclass(slots=True)
class LoggedStates:
    """The images nearest to a packed position, by the digests of the rows' keys.

    Attributes
    ----------
    is_unknown : a statement without row images may have changed any row.
    """

    place: int
    is_unknown: bool = False
    _before: dict[bytes, Image] = field(default_factory=dict)
    _after: dict[bytes, Image] = field(default_factory=dict)

    def add(self, key: bytes, image: Image) -> None:
        """Add an image of a row, in any order."""
        if image.place < self.place:
            self._before[key] = max(self._before.get(key, image), image)
        else:
            self._after[key] = min(self._after.get(key, image), image)

    def add_all(self, keys: Iterable[bytes], images: Iterable[Image]) -> None:
        """Add images of rows with these keys."""
        for key, image in zip(keys, images, strict=True):
            self.add(key, image)

    def is_changed(self, key: bytes) -> bool:
        """Return whether a row is, or may be, changed."""
        return self.is_unknown or key in self._before or key in self._after

    def at_place(self, key: bytes) -> bytes | None:
        """Return the digest of a changed row as it was at the position; None if it did not exist.

        The first image after the position shows the row before its next change, or that the change
        inserts it. If there is none, the last image shows the result of the last change.
        """
        if (image := self._after.get(key)) is not None:
            return None if image.is_after else image.digest
        image = self._before[key]
        return image.digest if image.is_after else None
