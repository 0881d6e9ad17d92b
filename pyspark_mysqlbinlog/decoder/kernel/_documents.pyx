# cython: language_level=3
# distutils: language = c++
"""JSON documents and variants of the kernel, one at a time, for comparison with Python."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from pyspark_mysqlbinlog.decoder.kernel._values cimport (
    Bytes,
    Column,
    ColumnProgram,
    Input,
    Raw,
    skip_value,
)


cdef extern from "json/variant.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass VariantKeys:
        VariantKeys() except +
        void cut(size_t)
        cbool append_metadata(Bytes&) except +

    cdef cppclass VariantImage:
        VariantImage(const vector[const Column*]&) except +
        cbool is_possible()
        void begin(Bytes&) except +
        void add_null() except +
        cbool add(Input&, const Column&) except +
        cbool finish(Bytes&) except +

    cbool write_document_json(Raw, Bytes&) except +
    cbool append_variant_document(Raw, VariantKeys&, Bytes&) except +


cdef inline Raw _raw(const uint8_t[::1] data):
    cdef Raw raw
    raw.data = &data[0] if data.shape[0] else NULL
    raw.size = data.shape[0]
    return raw


cdef inline bytes _bytes(const Bytes& out):
    return out.data()[:out.size()]


def document_json(const uint8_t[::1] document):
    """Return a stored document as JSON text, in UTF-8; None if the kernel rejects it."""
    cdef Raw raw = _raw(document)
    cdef Bytes out
    cdef cbool is_written
    with nogil:
        is_written = write_document_json(raw, out)
    return _bytes(out) if is_written else None


cdef class DocumentVariants:
    """Encodes documents as variants, one after another, like the rows of a JSON column."""

    cdef VariantKeys _keys

    def variant(self, const uint8_t[::1] document):
        """Return value and metadata; None if the kernel rejects the document."""
        cdef Raw raw = _raw(document)
        cdef Bytes value, metadata
        cdef cbool is_written
        with nogil:
            self._keys.cut(0)
            is_written = append_variant_document(
                raw, self._keys, value
            ) and self._keys.append_metadata(metadata)
        return (_bytes(value), _bytes(metadata)) if is_written else None


cdef class ImageVariants:
    """Encodes row images of some columns as variants, one after another."""

    cdef unique_ptr[VariantImage] _image
    cdef list _programs

    def __init__(self, programs):
        cdef vector[const Column*] shown
        cdef ColumnProgram program
        self._programs = list(programs)
        for program in self._programs:
            if not program.column.is_skipped():
                shown.push_back(&program.column)
        self._image.reset(new VariantImage(shown))
        if not self._image.get().is_possible():
            raise ValueError("two columns have the same name")

    def variant(self, const uint8_t[::1] image):
        """Return value, metadata and the image's length; None if the kernel rejects the image."""
        cdef Bytes value, metadata
        cdef VariantImage* writer = self._image.get()
        cdef ColumnProgram program
        cdef size_t bitmap = (len(self._programs) + 7) // 8
        cdef Raw raw = _raw(image)
        cdef Input values
        cdef size_t at = 0
        if bitmap > raw.size:
            return None
        values.at = raw.data + bitmap
        values.end = raw.data + raw.size
        writer.begin(value)
        for program in self._programs:
            if raw.data[at >> 3] >> (at & 7) & 1:
                if not program.column.is_skipped():
                    writer.add_null()
            elif program.column.is_skipped():
                if not skip_value(values, program.column):
                    return None
            elif not writer.add(values, program.column):
                return None
            at += 1
        if not writer.finish(metadata):
            return None
        return _bytes(value), _bytes(metadata), values.at - raw.data
