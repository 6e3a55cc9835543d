"""Timestamps out of the texts of literals; see _moments.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef bint moment_of(
    const char* text, uint32_t size, uint32_t lexical, int64_t factor,
    int64_t* micros, uint8_t* domain,
) noexcept nogil
