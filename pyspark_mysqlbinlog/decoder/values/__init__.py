"""One value of one column: bytes to value, bytes to JSON text, or passed over.

By MySQL's families of types: `numbers`, `decimals`, `strings` (with `charsets`), `temporals`;
`select_codec` picks the codec of a column.
"""
