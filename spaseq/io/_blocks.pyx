# cython: language_level=3, boundscheck=False, wraparound=False
"""Blocks of bytes to read into, used again as soon as nobody holds them.

A fresh block costs the system a page at a time, which is a good part of what reading costs.
Whoever holds a block, or a batch that holds it, counts as a reference, so one to which this
module has the only references is free. Cost: constant.
"""

from cpython.object cimport PyObject

cdef enum:
    KEPT = 4
    LONGEST = 1 << 12       # what may be left of a line for a kept block to have room


cdef class Blocks:
    """Some blocks with room for `size` bytes and the beginning of a line."""

    cdef list kept
    cdef Py_ssize_t size

    def __cinit__(self, Py_ssize_t size):
        self.kept = []
        self.size = size

    def spare(self, Py_ssize_t taken):
        """A bytearray that nobody holds, with room behind `taken` bytes."""
        cdef bytearray block
        cdef Py_ssize_t i
        if taken > LONGEST:
            return bytearray(2 * taken + self.size)
        for i in range(len(self.kept)):
            block = self.kept[i]
            # The list and `block` have one reference each.
            if (<PyObject*>block).ob_refcnt == 2:
                return block
        block = bytearray(LONGEST + self.size)
        if len(self.kept) < KEPT:
            self.kept.append(block)
        return block
