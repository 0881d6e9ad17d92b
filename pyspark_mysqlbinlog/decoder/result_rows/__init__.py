"""Rows of a SELECT as row images: what the log would hold of them.

A first load reads rows with a prepared SELECT, and everything behind that is the log's: the same
table maps, rows events, decoders. So a row that was loaded is the row that the stream would give.

`columns` says what to SELECT, and what each column of the result is; `encode` (the kernel has its
twin) makes images of rows; `read` takes them out of a result; `events` wraps them for the decoder.
"""
