"""Names of Turtle and TriG: prefixes, and references against the base IRI → terms of a batch.

A prefixed name is looked up by its spelling, in a direct-mapped cache of the batch. A new one is
composed of its prefix's IRI and its local name without backslashes. As in pyoxigraph, the IRI is
validated only if the local name has escapes or may continue the authority. References that begin
with a fragment, and simple paths, are appended to a part of the base; pyoxigraph resolves others,
once for each spelling.

Cost: linear in the bytes. Source: RFC 3986 section 5.2; RDF 1.2 Turtle, section on IRIs.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.string cimport memchr, memcmp, memcpy, memset

import pyoxigraph as ox

from spaseq.rdf.native._nquads cimport Beginning, TermReader, is_iri, same
from spaseq.rdf.native._terms cimport hash_of, known_term, mem_alloc, mem_free, mem_realloc, term_t
from spaseq.rdf.syntax import (
    BASE_MAX_CHARACTERS,
    EXPANSION as _EXPANSION,
    FREE_BYTES as _FREE_BYTES,
    LONG_BASE,
    TOO_LONG_PREFIXES,
    LimitError,
)

cdef struct Prefix:
    char* name
    size_t size
    char* iri
    size_t iri_size
    size_t root         # bytes of the scheme and the authority with its slash; 0: no path
    int before          # the prefix declared before it with the same hash; -1: none

# The last term of a spelling.
cdef struct Spelling:
    uint64_t hash
    const char* text
    size_t size
    term_t term         # 0: valid and not entered

cdef enum:
    MOST_TOKEN = 1 << 23    # bytes of an IRI, a name or a label; pyoxigraph judges longer ones
    SPELLINGS = 1024
    PREFIX_CHAINS = 64
    FEW_PREFIXES = 256      # up to which the chains are short

cdef enum:
    MOST_REFERENCES = 10000     # unusual references whose IRIs are remembered

cdef uint64_t FREE_BYTES = _FREE_BYTES

cdef uint64_t EXPANSION = _EXPANSION

cdef const char* _BEFORE_NAMES = b" \t\r\n:<>\"'()[]{},;^@|~"


cdef inline int _chain(const char* name, size_t size) noexcept nogil:
    """The chain of prefixes with such a name."""
    if size == 0:
        return 0
    return <int>(
        (<uint8_t>name[0] * 7 + <uint8_t>name[size - 1] * 13 + size) & (PREFIX_CHAINS - 1)
    )


cdef size_t _root_size(const char* iri, size_t size) noexcept nogil:
    """The bytes of the scheme and the authority with its slash; 0 if no path follows it."""
    cdef const char* end = iri + size
    cdef const char* at = <const char*>memchr(iri, c":", size)
    if at == NULL or end - at < 3 or at[1] != c"/" or at[2] != c"/":
        return 0
    at += 3
    while at < end and at[0] != c"/" and at[0] != c"?" and at[0] != c"#":
        at += 1
    return at + 1 - iri if at < end and at[0] == c"/" else 0


cdef class NameReader(TermReader):
    """Enters the IRIs of one document into the batch, and knows its prefixes and its base."""

    cdef Prefix* declared
    cdef uint32_t prefix_count, prefix_room
    cdef int chains[PREFIX_CHAINS]
    cdef int* many_chains       # of more than FEW_PREFIXES, by hash; NULL if there are fewer
    cdef uint32_t many_count    # a power of two
    cdef uint64_t bytes_read, bytes_written     # of the document, and of IRIs composed for it
    cdef str base
    cdef bytes folder, document     # what a simple path and a fragment are appended to, or None
    cdef const char* folder_text
    cdef const char* document_text
    cdef size_t folder_size, document_size
    cdef dict resolved          # unusual references against the base
    cdef Spelling spellings[SPELLINGS]

    def __cinit__(self, *_):
        memset(self.chains, 0xFF, sizeof(self.chains))

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.prefix_count):
            mem_free(self.declared[i].name)
            mem_free(self.declared[i].iri)
        mem_free(self.declared)
        mem_free(self.many_chains)

    cdef int forget(self) except -1:
        """Drop all spellings and what they mean."""
        self.beginning.size = 0
        memset(self.spellings, 0, sizeof(self.spellings))
        return 0

    # ------------------------------------------------------------ prefixes and the base

    def prefixes(self, bytes text=None) -> list:
        """The name and the IRI of each prefix; those that a text may use, if there is one."""
        cdef list found = []
        if text is not None and self.prefix_count > 8:
            return self._used_prefixes(text)
        cdef uint32_t i
        for i in range(self.prefix_count):
            found.append((
                self.declared[i].name[:self.declared[i].size].decode(),
                self.declared[i].iri[:self.declared[i].iri_size].decode(),
            ))
        return found

    def _used_prefixes(self, bytes text) -> list:
        """The prefixes whose names are before a colon of a text."""
        cdef const char* begin = text
        cdef const char* end = begin + len(text)
        cdef const char* at = begin
        cdef const char* name
        cdef Prefix* prefix
        cdef dict found = {}
        while True:
            at = <const char*>memchr(at, c":", end - at)
            if at == NULL:
                return list(found.items())
            name = at
            while name > begin and memchr(_BEFORE_NAMES, (name - 1)[0], 21) == NULL:
                name -= 1
            prefix = self.prefix_of(name, at - name)
            if prefix != NULL:
                found[name[:at - name].decode()] = prefix.iri[:prefix.iri_size].decode()
            at += 1

    def set_prefix(self, str name not None, str iri not None):
        """Declare a prefix."""
        self.declare(name.encode(), iri.encode())

    @property
    def base_iri(self):
        """The base IRI, or None."""
        return self.base

    def set_base(self, str base):
        """Set the base IRI, or None.

        References without a path, and simple paths, are appended to a part of it.

        Raises:
            LimitError: if it is too long to be resolved again and again.
        """
        if base is not None and len(base) > BASE_MAX_CHARACTERS:
            raise LimitError(LONG_BASE)
        self.base = base
        self.resolved = {}
        self.folder = self.document = None
        if base is not None and base.startswith(("http://", "https://", "file://")):
            folder, document = self._against_base(b"x"), self._against_base(b"#x")
            if folder is not None and document is not None:
                self.folder = folder[:len(folder) - 2]
                self.document = document[:len(document) - 3]
        self.folder_text = self.document_text = NULL
        if self.folder is not None:
            self.folder_text, self.folder_size = self.folder, len(self.folder)
            self.document_text, self.document_size = self.document, len(self.document)
        self.forget()

    cdef int declare(self, bytes name, bytes iri) except -1:
        """Declare a prefix, or change its IRI."""
        cdef Py_ssize_t size = len(name), length = len(iri)
        cdef const char* text = iri
        cdef Prefix* prefix = self.prefix_of(name, size)
        cdef Prefix* grown
        cdef char* copied
        cdef int chain
        if prefix != NULL and (
            prefix.iri_size == <size_t>length and memcmp(prefix.iri, text, length) == 0
        ):
            return 0
        copied = <char*>mem_alloc(length + 1)
        if copied == NULL:
            raise MemoryError
        memcpy(copied, text, length)
        if prefix == NULL:
            if self.prefix_count == self.prefix_room:
                grown = <Prefix*>mem_realloc(
                    self.declared, (2 * <size_t>self.prefix_room + 8) * sizeof(Prefix)
                )
                if grown != NULL:
                    self.declared = grown
                    self.prefix_room = 2 * self.prefix_room + 8
            else:
                grown = self.declared
            prefix = &self.declared[self.prefix_count]
            if grown != NULL:
                prefix.name = <char*>mem_alloc(size + 1)
            if grown == NULL or prefix.name == NULL:
                mem_free(copied)
                raise MemoryError
            memcpy(prefix.name, <const char*>name, size)
            prefix.size = size
            chain = self.chain_of(name, size)
            if self.many_chains != NULL:
                prefix.before = self.many_chains[chain]
                self.many_chains[chain] = <int>self.prefix_count
            else:
                prefix.before = self.chains[chain]
                self.chains[chain] = <int>self.prefix_count
            self.prefix_count += 1
        else:
            mem_free(prefix.iri)
            self.forget()
        prefix.iri = copied
        prefix.iri_size = length
        prefix.root = _root_size(text, length)
        if self.prefix_count > FEW_PREFIXES and self.prefix_count > self.many_count:
            self.spread()
        return 0

    cdef int spread(self) except -1:
        """Divide many prefixes among more chains."""
        cdef uint32_t i, count = max(2 * self.many_count, 4 * <uint32_t>FEW_PREFIXES)
        cdef int chain
        cdef int* chains = <int*>mem_realloc(self.many_chains, count * sizeof(int))
        if chains == NULL:
            raise MemoryError
        memset(chains, 0xFF, count * sizeof(int))
        self.many_chains, self.many_count = chains, count
        for i in range(self.prefix_count):
            chain = self.chain_of(self.declared[i].name, self.declared[i].size)
            self.declared[i].before = chains[chain]
            chains[chain] = <int>i
        return 0

    cdef int chain_of(self, const char* text, size_t size) noexcept nogil:
        """The chain of prefixes with such a name."""
        if self.many_chains == NULL:
            return _chain(text, size)
        return <int>(hash_of(text, size) & (self.many_count - 1))

    cdef int compose(self, size_t size) except -1 nogil:
        """Count the bytes of a prefix or a base that an IRI begins with."""
        self.bytes_written += size
        if self.bytes_written > FREE_BYTES + EXPANSION * self.bytes_read:
            with gil:
                raise LimitError(TOO_LONG_PREFIXES)
        return 0

    cdef Prefix* prefix_of(self, const char* text, size_t size) noexcept nogil:
        """The prefix of a name; NULL: it has not been declared."""
        cdef int chain = self.chain_of(text, size)
        cdef int at = self.chains[chain] if self.many_chains == NULL else self.many_chains[chain]
        cdef Prefix* prefix
        while at >= 0:
            prefix = &self.declared[at]
            if prefix.size == size and memcmp(prefix.name, text, size) == 0:
                return prefix
            at = prefix.before
        return NULL

    # ------------------------------------------------------------ IRIs

    cdef bint iri(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil:
        """Whether `<...>` is certainly valid; its number if it is `wanted`."""
        if size > MOST_TOKEN:
            return False
        if is_relative(text + 1, size - 2):
            return self.relative(text, size, term)
        return self.name_or_label(text, size, wanted, term)

    cdef bint relative(self, const char* text, size_t size, term_t* term) except -1 nogil:
        """Resolve a reference without a scheme against the base; False if it is not valid."""
        cdef const char* part = NULL
        cdef size_t part_size = 0
        cdef Beginning none
        if self.document_text != NULL and (size == 2 or text[1] == c"#"):
            part, part_size = self.document_text, self.document_size
        elif self.folder_text != NULL and is_simple_path(text + 1, size - 2):
            part, part_size = self.folder_text, self.folder_size
        if part != NULL:
            self.compose(part_size)
            self.reserve(part_size + size)
            memcpy(self.scratch, part, part_size)
            memcpy(self.scratch + part_size, text + 1, size - 1)
            none.text = NULL
            none.size = 0
            if is_iri(self.scratch + 1, part_size + size - 3, &none):
                term[0] = self.entered(self.scratch, part_size + size - 1)
                return True
        return self.asked_reference(text, size, term)

    cdef bint asked_reference(self, const char* text, size_t size, term_t* term) except -1 nogil:
        """Like `relative`, for an unusual reference, which pyoxigraph resolves."""
        with gil:
            known = self._resolved(text[1:size - 1])
            if known is None:
                return False
            self.compose(len(known))
            term[0] = self.entered(known, len(known))
            return True

    def _resolved(self, bytes reference):
        """The resolved reference as the text of a term, which is cached; None: not valid."""
        if reference not in self.resolved:
            if len(self.resolved) == MOST_REFERENCES:
                self.resolved.clear()
            self.resolved[reference] = self._against_base(reference)
        return self.resolved[reference]

    def _against_base(self, bytes reference):
        """A reference resolved against the base, as the text of a term; None: not valid."""
        statement = b"<" + reference + b"> <x:x> <x:x> ."
        try:
            (quad,) = ox.parse(statement, format=ox.RdfFormat.TURTLE, base_iri=self.base)
        except (SyntaxError, ValueError):
            return None
        return b"<" + quad.subject.value.encode() + b">"

    cdef bint name(
        self, const char* text, size_t size, bint escaped, bint wanted, term_t* term
    ) except -1 nogil:
        """Whether a prefixed name is certainly valid; its number if it is `wanted`."""
        cdef const char* colon = <const char*>memchr(text, c":", size)
        cdef const Prefix* prefix = self.prefix_of(text, colon - text)
        cdef const char* at = colon + 1
        cdef const char* end = text + size
        cdef char* out
        cdef Beginning root
        cdef Spelling* known
        cdef uint64_t hash
        if prefix == NULL or size > MOST_TOKEN:
            return False
        if not wanted and not escaped and prefix.root:
            return True
        hash = hash_of(text, size)
        known = &self.spellings[hash & (SPELLINGS - 1)]
        if known.hash == hash and known.size == size and same(known.text, text, size) and (
            known.term or not wanted
        ):
            term[0] = known.term
            return True
        self.compose(prefix.iri_size)
        self.reserve(prefix.iri_size + size + 2)
        out = self.scratch
        out[0] = c"<"
        memcpy(out + 1, prefix.iri, prefix.iri_size)
        out += 1 + prefix.iri_size
        if escaped:
            while at < end:
                if at[0] == c"\\":
                    at += 1
                out[0] = at[0]
                out += 1
                at += 1
        else:
            memcpy(out, at, end - at)
            out += end - at
        out[0] = c">"
        out += 1
        root.text = self.scratch + 1
        root.size = prefix.root
        if (escaped or prefix.root == 0) and not is_iri(
            self.scratch + 1, out - self.scratch - 2, &root
        ):
            if not self.asked_iri(self.scratch + 1, out - self.scratch - 2):
                return False
        term[0] = self.entered(self.scratch, out - self.scratch) if wanted else 0
        known.hash = hash
        known.text = text
        known.size = size
        known.term = term[0]
        return True

    cdef term_t entered(self, const char* text, size_t size) except 0 nogil:
        """The number of a term whose text is not in a buffer."""
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term == 0:
            term = self.events.batch.enter(hash, text, <uint32_t>size, True)
        return term
