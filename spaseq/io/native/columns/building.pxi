"""Builders of Arrow columns of strings and of 64-bit numbers.

`array` returns the values added so far as an Arrow array, and empties the builder for reuse. Cost:
one copy of the values.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memset

import pyarrow as pa

from spaseq.rdf.native._terms cimport mem_free, mem_grow
from spaseq.results.native._match cimport put

cdef const char* FOR_COLUMNS = b"another value of a column"


cdef class Strings:
    """A column of strings in UTF-8, some of them null."""

    def __cinit__(self):
        memset(&self.text, 0, sizeof(Text))
        self._widen()
        self.ends[0] = 0

    def __dealloc__(self):
        mem_free(self.text.begin)
        mem_free(self.ends)
        mem_free(self.present)

    def _widen(self):
        cdef size_t room = 2 * self.room if self.room else 1024
        self.ends = <int32_t*>mem_grow(self.ends, room + 1, sizeof(int32_t), FOR_COLUMNS)
        self.present = <uint8_t*>mem_grow(self.present, room // 8, 1, FOR_COLUMNS)
        self.room = room

    cdef int _next(self, bint present) except -1:
        if self.count == self.room:
            self._widen()
        if self.text.size > 0x7FFFFFFF:
            raise MemoryError("the strings of a column take more than 2 GB")
        if self.count % 8 == 0:
            self.present[self.count // 8] = 0
        self.present[self.count // 8] |= <uint8_t>(present << self.count % 8)
        self.count += 1
        self.ends[self.count] = <int32_t>self.text.size
        return 0

    cdef int close(self) except -1:
        """Add the bytes put into `text` since the last string as a string."""
        return self._next(True)

    cdef int add(self, const char* text, size_t size) except -1:
        """Add a string."""
        put(&self.text, text, size)
        return self._next(True)

    cdef int skip(self) except -1:
        """Add a null."""
        self.nulls += 1
        return self._next(False)

    cdef int clear(self) noexcept:
        self.text.size = self.count = self.nulls = 0
        return 0

    def buffers(self) -> tuple[bytes, bytes]:
        """The concatenated strings, and their offsets as 32-bit numbers; empties the builder."""
        found = (
            PyBytes_FromStringAndSize(self.text.begin, self.text.size),
            PyBytes_FromStringAndSize(<char*>self.ends, (self.count + 1) * sizeof(int32_t)),
        )
        self.clear()
        return found

    def array(self):
        """The column as an array of strings; empties the builder."""
        cdef size_t count = self.count, nulls = self.nulls
        bits = None
        if nulls:
            bits = pa.py_buffer(
                PyBytes_FromStringAndSize(<char*>self.present, (count + 7) // 8)
            )
        texts, ends = self.buffers()
        return pa.StringArray.from_buffers(
            count, pa.py_buffer(ends), pa.py_buffer(texts), bits, nulls
        )


@cython.final
cdef class Numbers:
    """A column of 64-bit numbers."""

    cdef int64_t* numbers
    cdef readonly size_t count
    cdef size_t room

    def __dealloc__(self):
        mem_free(self.numbers)

    cdef int add(self, int64_t number) except -1:
        """Add a number."""
        if self.count == self.room:
            self.room = 2 * self.room if self.room else 1024
            self.numbers = <int64_t*>mem_grow(
                self.numbers, self.room, sizeof(int64_t), FOR_COLUMNS
            )
        self.numbers[self.count] = number
        self.count += 1
        return 0

    def array(self):
        """The column as an array of numbers; empties the builder."""
        found = PyBytes_FromStringAndSize(<char*>self.numbers, self.count * sizeof(int64_t))
        count, self.count = self.count, 0
        return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(found)])
