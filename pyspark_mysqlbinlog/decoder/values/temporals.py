"""DATE, TIME, DATETIME and TIMESTAMP, in the current layout and in the one from before 5.6.

A value is numbers (days, microseconds), from which the JSON text is made. Only MySQL has zero and
partial-zero dates: their text is as SELECT shows it, with a space, so that readers do not parse it
as an ISO time.

Fractions of f digits take (f + 1) // 2 bytes, big-endian, as hundredths, ten-thousandths or
millionths; f is in the table map. Sources: my_time.c, my_*_packed_from_binary.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import lru_cache

from pyspark_mysqlbinlog.decoder.values.codec import Codec, cut_short, fixed_skip, make_codec
from pyspark_mysqlbinlog.decoder.values.days import MICROS_PER_DAY
from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = [
    "date",
    "datetime2",
    "datetime_old",
    "time2",
    "time_old",
    "timestamp2",
    "timestamp_old",
]

_TWO = tuple(f"{number:02d}" for number in range(100))
_MICROS_PER_HOUR, _MICROS_PER_MINUTE, _MICROS_PER_SECOND = 3_600_000_000, 60_000_000, 1_000_000
_MAX_HOURS = 838


def _fraction(fsp: int) -> tuple[int, int, int]:
    """Return (bytes, units per second, microseconds per unit) of a fraction of `fsp` digits."""
    size = (fsp + 1) // 2
    units: int = 100**size
    return size, units, _MICROS_PER_SECOND // units


def _clock(micros: int, fsp: int) -> str:
    """Return ``10:00:00.123``: `fsp` digits of the microseconds of a day (or of a TIME)."""
    seconds, fraction = divmod(micros, _MICROS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    hours = _TWO[hour] if hour < 100 else str(hour)
    if fsp == 0:
        return f"{hours}:{_TWO[minute]}:{_TWO[second]}"
    return f"{hours}:{_TWO[minute]}:{_TWO[second]}.{fraction // 10 ** (6 - fsp):0{fsp}d}"


def _bad(what: str, found: str) -> MalformedEventError:
    return MalformedEventError(f"{what} holds {found}, which is not a value of that type")


def _checked_date(what: str, year: int, month: int, day: int) -> int:
    """Return year * 10000 + month * 100 + day; zero parts are allowed."""
    if year > 9999 or month > 12 or day > 31:
        raise _bad(what, f"the date {year}-{month}-{day}")
    return year * 10_000 + month * 100 + day


def _checked_clock(what: str, hour: int, minute: int, second: int, max_hour: int) -> int:
    """Microseconds."""
    if hour > max_hour or minute > 59 or second > 59:
        raise _bad(what, f"the time {hour}:{minute}:{second}")
    return ((hour * 60 + minute) * 60 + second) * _MICROS_PER_SECOND


@lru_cache(maxsize=8192)
def _date_text(ymd: int) -> str:
    """Return ``2026-11-20`` for 20261120."""
    return f"{ymd // 10_000:04d}-{_TWO[ymd // 100 % 100]}-{_TWO[ymd % 100]}"


def _is_zero_date(ymd: int) -> bool:
    """Whether month or day is zero: 0000-00-00, 2026-00-00, 2026-11-00, 2026-00-20."""
    return ymd % 100 == 0 or ymd % 10_000 < 100


def date(what: str) -> Codec:
    """DATE, 3 bytes little-endian. Value: year * 10000 + month * 100 + day.

    ::

        yyyy yyyy  yyyy yyym  mmmd dddd      (the highest byte first)
    """

    def read(data: bytes, pos: int) -> tuple[int, int]:
        end = pos + 3
        if end > len(data):
            raise cut_short(what, 3, data, pos)
        packed = int.from_bytes(data[pos:end], "little")
        return _checked_date(what, packed >> 9, packed >> 5 & 15, packed & 31), end

    def json(ymd: int) -> str:
        return f'"{_date_text(ymd)}"'

    return make_codec(read, fixed_skip(what, 3), json)


def time2(what: str, fsp: int) -> Codec:
    """TIME(fsp), 3 bytes and the fraction. Value: microseconds, may be negative.

    The bits are one big-endian number including the fraction, with an offset of 2^23 (times the
    fraction's range). A negative TIME is the negative of that number, so -00:00:01.5 is not -1
    and .5::

        1h hhhh hhhh hh  mm mmmm  ss ssss  f...
    """
    fraction_size, units, unit_micros = _fraction(fsp)
    size = 3 + fraction_size
    fraction_bits = 8 * fraction_size
    fraction_mask = (1 << fraction_bits) - 1
    offset = 0x800000 << fraction_bits

    def read(data: bytes, pos: int) -> tuple[int, int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        signed = int.from_bytes(data[pos:end], "big") - offset
        packed = abs(signed)
        fraction = packed & fraction_mask
        packed >>= fraction_bits
        if fraction >= units:
            raise _bad(what, f"a fraction of {fraction}/{units}")
        micros = fraction * unit_micros + _checked_clock(
            what, packed >> 12, packed >> 6 & 63, packed & 63, _MAX_HOURS
        )
        return (-micros if signed < 0 else micros), end

    return make_codec(read, fixed_skip(what, size), _time_json(fsp))


def _time_json(fsp: int) -> Callable[[int], str]:
    def json(micros: int) -> str:
        return f'"-{_clock(-micros, fsp)}"' if micros < 0 else f'"{_clock(micros, fsp)}"'

    return json


def datetime2(what: str, fsp: int) -> Codec:
    """DATETIME(fsp), 5 bytes big-endian and the fraction.

    Value: (year * 10000 + month * 100 + day, microseconds of the day)::

        1yyy yyyy  yyyy yyyy  yydd dddh  hhhh mmmm  mmss ssss     y: year * 13 + month
    """
    fraction_size, units, unit_micros = _fraction(fsp)
    size = 5 + fraction_size

    def read(data: bytes, pos: int) -> tuple[tuple[int, int], int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        packed = int.from_bytes(data[pos : pos + 5], "big")
        if not packed >> 39:
            raise _bad(what, f"a negative DATETIME 0x{packed:010x}")
        year, month = divmod(packed >> 22 & 0x1FFFF, 13)
        ymd = _checked_date(what, year, month, packed >> 17 & 31)
        micros = _checked_clock(what, packed >> 12 & 31, packed >> 6 & 63, packed & 63, 23)
        if fraction_size:
            fraction = int.from_bytes(data[pos + 5 : end], "big")
            if fraction >= units:
                raise _bad(what, f"a fraction of {fraction}/{units}")
            micros += fraction * unit_micros
        return (ymd, micros), end

    return make_codec(read, fixed_skip(what, size), _datetime_json(fsp))


def _datetime_json(fsp: int) -> Callable[[tuple[int, int]], str]:
    def json(value: tuple[int, int]) -> str:
        ymd, micros = value
        separator = " " if _is_zero_date(ymd) else "T"
        return f'"{_date_text(ymd)}{separator}{_clock(micros, fsp)}"'

    return json


def timestamp2(what: str, fsp: int) -> Codec:
    """TIMESTAMP(fsp), 4 bytes big-endian and the fraction.

    Value: microseconds since 1970 UTC; None is the zero date (stored as 0). MariaDB also has
    values within second 0.
    """
    fraction_size, units, unit_micros = _fraction(fsp)
    size = 4 + fraction_size

    def read(data: bytes, pos: int) -> tuple[int | None, int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        seconds = int.from_bytes(data[pos : pos + 4], "big")
        fraction = int.from_bytes(data[pos + 4 : end], "big")
        if fraction >= units:
            raise _bad(what, f"a fraction of {fraction}/{units}")
        micros = seconds * _MICROS_PER_SECOND + fraction * unit_micros
        return micros or None, end

    return make_codec(read, fixed_skip(what, size), _timestamp_json(fsp))


def _timestamp_json(fsp: int) -> Callable[[int | None], str]:
    zero = f'"0000-00-00 {_clock(0, fsp)}"'

    def json(micros: int | None) -> str:
        if micros is None:
            return zero
        days, rest = divmod(micros, MICROS_PER_DAY)
        return f'"{_text_of_day(days)}T{_clock(rest, fsp)}Z"'

    return json


@lru_cache(maxsize=8192)
def _text_of_day(days: int) -> str:
    """Return ``2026-11-20`` for days since 1970."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days)).isoformat()


def time_old(what: str) -> Codec:
    """TIME before 5.6: 3 bytes little-endian, signed, the number HHMMSS. Value: microseconds."""

    def read(data: bytes, pos: int) -> tuple[int, int]:
        end = pos + 3
        if end > len(data):
            raise cut_short(what, 3, data, pos)
        signed = int.from_bytes(data[pos:end], "little", signed=True)
        number = abs(signed)
        micros = _checked_clock(
            what, number // 10_000, number // 100 % 100, number % 100, _MAX_HOURS
        )
        return (-micros if signed < 0 else micros), end

    return make_codec(read, fixed_skip(what, 3), _time_json(0))


def datetime_old(what: str) -> Codec:
    """DATETIME before 5.6: 8 bytes little-endian, YYYYMMDDHHMMSS. Value: `datetime2`'s."""

    def read(data: bytes, pos: int) -> tuple[tuple[int, int], int]:
        end = pos + 8
        if end > len(data):
            raise cut_short(what, 8, data, pos)
        ymd, hms = divmod(int.from_bytes(data[pos:end], "little"), 1_000_000)
        _checked_date(what, ymd // 10_000, ymd // 100 % 100, ymd % 100)
        micros = _checked_clock(what, hms // 10_000, hms // 100 % 100, hms % 100, 23)
        return (ymd, micros), end

    return make_codec(read, fixed_skip(what, 8), _datetime_json(0))


def timestamp_old(what: str) -> Codec:
    """TIMESTAMP before 5.6: 4 bytes little-endian. Value: `timestamp2`'s."""

    def read(data: bytes, pos: int) -> tuple[int | None, int]:
        end = pos + 4
        if end > len(data):
            raise cut_short(what, 4, data, pos)
        seconds = int.from_bytes(data[pos:end], "little")
        return (seconds * _MICROS_PER_SECOND if seconds else None), end

    return make_codec(read, fixed_skip(what, 4), _timestamp_json(0))
