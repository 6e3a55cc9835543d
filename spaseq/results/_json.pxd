"""Texts of terms and times → JSON; see _json.pyx."""

from libc.stdint cimport int64_t

cdef struct Text:
    char* begin
    size_t size
    size_t room

cdef int put(Text* text, const char* what, size_t size) except -1
cdef int put_bytes(Text* text, bytes what) except -1
cdef int put_number(Text* text, int64_t number) except -1
cdef int put_string(Text* text, const char* what, size_t size) except -1
cdef int put_name(Text* text, const char* term, size_t size) except -1
cdef int put_term(Text* text, const char* term, size_t size) except -1
cdef int put_time(Text* text, int64_t micros, bint dated) except -1
