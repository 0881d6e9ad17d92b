"""Rows of a SELECT as row images, as the binlog would contain them.

A snapshot reads rows with a prepared SELECT. All later steps are the binlog's: the same table
maps, rows events and decoders. Snapshot rows are therefore equal to those of the stream.

`columns` makes the SELECT list and describes each column of the result; `encode` (also in the
compiled kernel) makes row images; `read` reads them from a result; `events` wraps them for the
decoder.
"""
