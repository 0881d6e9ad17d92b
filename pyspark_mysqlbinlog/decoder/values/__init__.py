"""Codecs of column values: bytes to value, bytes to JSON text, or skipped.

By MySQL's type families: `numbers`, `decimals`, `strings` (with `charsets`), `temporals`;
`select_codec` selects the codec of a column.
"""
