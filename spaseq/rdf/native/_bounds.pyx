# cython: language_level=3, boundscheck=False, wraparound=False
"""JSON, XML and Turtle as bytes → what a parser would nest and repeat, before it sees them.

Parsers of JSON, JSON-LD and RDF/XML recurse, copy a context into each object below it, or write the
text of an entity wherever it is named. Their cost therefore grows faster than the document. These
scanners read the bytes before such a parser does, know only strings, brackets and tags, and raise
`LimitError` where a bound is exceeded. They do not decide whether a document is well-formed.

Cost: linear in the bytes. Memory: one tag, one string of at most `STRING_MAX_BYTES`, one context of
at most `CONTEXT_MAX_BYTES`, or the declarations of entities.
"""

import json

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr

from spaseq.rdf.syntax import EXPANSION as _EXPANSION, FREE_BYTES as _FREE_BYTES
from spaseq.rdf.syntax import BASE_MAX_CHARACTERS, DEEP_BRACKETS, LONG_BASE, LimitError
from spaseq.rdf.syntax import MAX_NESTED_BRACKETS as _MAX_NESTED_BRACKETS

cdef enum:
    LEVELS = 1024               # of nesting that are stored; the bounds are lower
    STRING_MAX_BYTES = 256      # of a string, or the name of an entity, that is looked up
    COPIED_PART = 16            # copying a context takes this part of the time of reading it

cdef int64_t MAX_NESTED_BRACKETS = _MAX_NESTED_BRACKETS
cdef int64_t BASE_MAX_BYTES = BASE_MAX_CHARACTERS
cdef int64_t FREE_BYTES = _FREE_BYTES
cdef int64_t EXPANSION = _EXPANSION
cdef int64_t CONTEXT_EXPANSION = 8      # the same for the contexts that it reads again
cdef int64_t OPEN_CONTEXTS_MAX_BYTES = 1 << 23      # copied for the open objects
cdef int64_t CONTEXT_MAX_BYTES = 1 << 20
cdef int64_t ATTRIBUTES_MAX = 1000      # of an element: parsers compare each with each
cdef int64_t NAMESPACES_MAX = 500       # that are open: parsers search all of them
cdef int64_t DECLARATION_MAX_BYTES = 1 << 20
cdef int ELEMENTS_MAX_NESTING = 1000


cdef class JsonScanner:
    """JSON in pieces.

    Args:
        most: The nesting depth of arrays and objects that is allowed.
        contexts: Reads a context of JSON-LD: the bytes of the context of each term that has one,
            and those of the longest IRI. None if the text is not JSON-LD.
    """

    cdef int most, depth
    cdef bint in_string, is_escaped
    cdef int64_t size
    # JSON-LD
    cdef object contexts
    cdef dict scoped            # the bytes of the context of each term that has one
    cdef bytearray token        # the string that was read last, up to STRING_MAX_BYTES
    cdef bint has_escapes
    cdef bint awaits_context    # whether the next value is a context
    cdef bint in_context
    cdef int context_depth      # of the object whose context is read
    cdef bytearray context
    cdef int64_t strings, longest_iri
    cdef int64_t written        # bytes of IRIs in place of terms
    cdef int64_t repeated       # bytes of contexts that the parser reads again
    cdef int64_t open_bytes     # of contexts, for each open object that has one
    cdef int64_t[LEVELS] active     # bytes of the contexts that apply at a depth
    cdef int64_t[LEVELS] own        # bytes of contexts copied for the object at a depth
    cdef int64_t[LEVELS] begun      # strings before the object at a depth

    def __cinit__(self, int most, object contexts=None):
        if most >= LEVELS:
            raise ValueError("more levels than are stored")
        self.most = most
        self.contexts = contexts
        self.scoped = {}
        self.token = bytearray()
        self.context = bytearray()
        self.active[0] = self.own[0] = self.begun[0] = 0

    def read(self, const uint8_t[::1] data not None):
        """Read the next bytes.

        Raises:
            LimitError: where they exceed a bound.
        """
        if data.shape[0] == 0:
            return
        self.size += data.shape[0]
        if self.contexts is None:
            if not self._read_plain(&data[0], &data[0] + data.shape[0]):
                self._too_deep()
            return
        self._read_linked(&data[0], data.shape[0])
        if self.repeated > FREE_BYTES + CONTEXT_EXPANSION * self.size:
            raise LimitError("its contexts are too large for the number of objects they apply to")
        if self.written > FREE_BYTES + EXPANSION * self.size:
            raise LimitError("the IRIs of its context are too long for the number of its terms")

    def begin(self):
        """Begin another text, without the nesting of the text before."""
        self.depth = 0
        self.in_string = self.is_escaped = False

    cdef int _too_deep(self) except -1:
        raise LimitError(f"its JSON is nested more than {self.most} deep")

    cdef bint _read_plain(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """Count the brackets outside of strings; False if they are nested too deeply."""
        cdef uint8_t c
        while at < end:
            if self.in_string:
                if self.is_escaped:
                    self.is_escaped = False
                    at += 1
                    continue
                while at < end and at[0] != c'"' and at[0] != c"\\":
                    at += 1
                if at < end:
                    self.is_escaped = at[0] == c"\\"
                    self.in_string = self.is_escaped
                    at += 1
                continue
            c = at[0]
            at += 1
            if c == c'"':
                self.in_string = True
            elif c == c"{" or c == c"[":
                self.depth += 1
                if self.depth > self.most:
                    return False
            elif (c == c"}" or c == c"]") and self.depth:
                self.depth -= 1
        return True

    # ------------------------------------------------------------ JSON-LD

    cdef int _read_linked(self, const uint8_t* data, Py_ssize_t size) except -1:
        cdef Py_ssize_t i = 0, run, begin = 0
        cdef uint8_t c
        while i < size:
            if self.in_string:
                if self.is_escaped:
                    self.is_escaped = False
                    self._extend(data + i, 1)
                    i += 1
                    continue
                run = i
                while i < size and data[i] != c'"' and data[i] != c"\\":
                    i += 1
                self._extend(data + run, i - run)
                if i == size:
                    break
                i += 1
                if data[i - 1] == c"\\":
                    self.is_escaped = self.has_escapes = True
                    self._extend(data + i - 1, 1)
                    continue
                self.in_string = False
                if not self.in_context:
                    self._string_ended()
                elif self.depth == self.context_depth:
                    self._context_ended(data + begin, i - begin)
                continue
            c = data[i]
            i += 1
            if c == c" " or c == c"\n" or c == c"\r" or c == c"\t":
                continue
            if self.awaits_context and (c == c'"' or c == c"{" or c == c"["):
                self.in_context = True
                self.context_depth = self.depth
                begin = i - 1
            self.awaits_context = False
            if c == c'"':
                self.in_string, self.has_escapes = True, False
                self.token.clear()
            elif c == c"{" or c == c"[":
                self.depth += 1
                if self.depth > self.most:
                    self._too_deep()
                self.active[self.depth] = self.active[self.depth - 1]
                self.own[self.depth] = 0
                self.begun[self.depth] = self.strings
            elif (c == c"}" or c == c"]") and self.depth:
                self.open_bytes -= self.own[self.depth]
                self.own[self.depth] = 0
                self.depth -= 1
                if self.in_context and self.depth == self.context_depth:
                    self._context_ended(data + begin, i - begin)
            elif c == c":" and not self.in_context:
                self.awaits_context = self._names_context()
        if self.in_context:
            self.context.extend(data[begin:size])
            self._check_context()
        return 0

    cdef int _extend(self, const uint8_t* part, Py_ssize_t size) except -1:
        """Append to the string that is read, up to the length that is looked up."""
        cdef Py_ssize_t room = STRING_MAX_BYTES - len(self.token)
        if size and room and not self.in_context:
            self.token.extend((<const char*>part)[:min(size, room)])
        return 0

    cdef bytes _last_string(self):
        """The string that was read last, without escapes."""
        if not self.has_escapes:
            return bytes(self.token)
        try:
            return json.loads(b'"' + self.token + b'"').encode()
        except ValueError:
            return bytes(self.token)

    cdef bint _names_context(self) except -1:
        if not self.has_escapes:
            return self.token == b"@context"
        return self._last_string() == b"@context"

    cdef int _string_ended(self) except -1:
        """Count what the parser writes and reads in place of a string that may be a term."""
        self.strings += 1
        self.written += self.longest_iri
        if self.scoped:
            size = self.scoped.get(self._last_string())
            if size is not None:
                self.repeated += <int64_t>size + self.active[self.depth] // COPIED_PART
        return 0

    cdef int _check_context(self) except -1:
        if len(self.context) > CONTEXT_MAX_BYTES:
            raise LimitError(f"a context has more than {CONTEXT_MAX_BYTES:,} bytes")
        return 0

    cdef int _context_ended(self, const uint8_t* rest, Py_ssize_t size) except -1:
        """Count what the context of the open object costs for this object and those in it."""
        cdef int depth = self.depth
        cdef int64_t before = self.strings - self.begun[depth]
        self.context.extend((<const char*>rest)[:size])
        self._check_context()
        cdef int64_t bytes_ = len(self.context)
        scoped, longest = self.contexts(bytes(self.context))
        self.context.clear()
        self.in_context = False
        if longest > self.longest_iri:
            self.written += (<int64_t>longest - self.longest_iri) * before
            self.longest_iri = longest
        for name, size_ in scoped.items():
            self.scoped[name] = max(size_, self.scoped.get(name, 0))
        if scoped:
            self.repeated += <int64_t>max(scoped.values()) * before
        self.repeated += self.active[depth] // COPIED_PART
        self.own[depth] += self.active[depth] + bytes_
        self.open_bytes += self.active[depth] + bytes_
        self.active[depth] += bytes_
        if self.open_bytes > OPEN_CONTEXTS_MAX_BYTES:
            raise LimitError("its contexts are too large for the depth of its objects")
        return 0


# ---------------------------------------------------------------- XML

cdef enum State:
    TEXT
    OPENED          # after <
    DECLARED        # after <!
    COMMENT
    CDATA
    INSTRUCTION
    START_TAG
    END_TAG
    REFERENCE       # after & in a text


cdef class XmlScanner:
    """XML in pieces.

    Args:
        entities: Reads declarations of entities: the bytes that each entity expands to.
    """

    cdef State state
    cdef object entities
    cdef dict sizes             # the bytes that each declared entity expands to
    cdef bytearray held         # the open tag, declaration or reference
    cdef uint8_t quote          # that is open in a tag
    cdef int brackets           # open ones of a declaration
    cdef int matched            # bytes of the end of a comment, section or instruction
    cdef int depth
    cdef bint has_root
    cdef int64_t size, written
    cdef int64_t namespaces, namespace_bytes, base_bytes, longest
    cdef int literal_depth      # of the element whose content is a literal; -1: none
    cdef int64_t[LEVELS] own_namespaces
    cdef int64_t[LEVELS] own_namespace_bytes
    cdef int64_t[LEVELS] own_base_bytes

    def __cinit__(self, object entities):
        self.entities = entities
        self.sizes = {}
        self.held = bytearray()
        self.literal_depth = -1

    @property
    def is_open(self) -> bool:
        """Whether a tag, a comment or a declaration has begun and is not complete."""
        return self.state != TEXT and self.state != REFERENCE

    @property
    def is_cut_off(self) -> bool:
        """Whether the root element has not been closed."""
        return self.depth > 0 or not self.has_root

    def read(self, const uint8_t[::1] data not None):
        """Read the next bytes.

        Raises:
            LimitError: where they exceed a bound.
        """
        if data.shape[0] == 0:
            return
        self.size += data.shape[0]
        self._read(&data[0], &data[0] + data.shape[0])
        if self.written > FREE_BYTES + EXPANSION * self.size:
            raise LimitError("its namespaces are too long for the number of its names")

    cdef int _read(self, const uint8_t* at, const uint8_t* end) except -1:
        cdef const uint8_t* found
        cdef uint8_t c
        while at < end:
            if self.state == TEXT:
                found = _text_end(at, end, len(self.sizes) != 0)
                if found == end:
                    return 0
                self.state = OPENED if found[0] == c"<" else REFERENCE
                self.held.clear()
                at = found + 1
            elif self.state == OPENED:
                c = at[0]
                self.quote = 0
                if c == c"!":
                    self.state, self.brackets = DECLARED, 1
                    at += 1
                elif c == c"?":
                    self.state, self.matched = INSTRUCTION, 0
                    at += 1
                else:
                    self.state = END_TAG if c == c"/" else START_TAG
            elif self.state == START_TAG or self.state == END_TAG:
                found = self._tag_end(at, end)
                self.held.extend((<const char*>at)[:found - at])
                at = found
                if at < end:
                    at += 1
                    self._tag_ended()
                    self.state = TEXT
            elif self.state == DECLARED:
                at = self._declaration(at, end)
            elif self.state == REFERENCE:
                if at[0] == c";":
                    self._refer(bytes(self.held))
                    self.state = TEXT
                elif at[0] == c"<" or at[0] == c"&" or len(self.held) >= STRING_MAX_BYTES:
                    self.state = TEXT
                    continue
                else:
                    self.held.append(at[0])
                at += 1
            else:
                at = self._section(at, end)
        return 0

    cdef const uint8_t* _section(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """Skip to the end of a comment, a CDATA section or an instruction."""
        cdef uint8_t first = c"?"
        cdef int needed = 1
        if self.state == COMMENT:
            first, needed = c"-", 2
        elif self.state == CDATA:
            first, needed = c"]", 2
        while at < end:
            if at[0] == c">" and self.matched >= needed:
                self.state = TEXT
                return at + 1
            self.matched = self.matched + 1 if at[0] == first else 0
            at += 1
        return at

    # ------------------------------------------------------------ tags

    cdef const uint8_t* _tag_end(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """The bracket that closes the tag, or the end."""
        if self.state == END_TAG:
            at = <const uint8_t*>memchr(at, c">", end - at)
            return end if at == NULL else at
        while at < end:
            if self.quote:
                at = <const uint8_t*>memchr(at, self.quote, end - at)
                if at == NULL:
                    return end
                self.quote = 0
            elif at[0] == c">":
                return at
            elif at[0] == c'"' or at[0] == c"'":
                self.quote = at[0]
            at += 1
        return end

    cdef int _tag_ended(self) except -1:
        cdef Py_ssize_t size = len(self.held)
        cdef bint is_empty
        if self.state == END_TAG:
            if self.depth:
                self._leave()
            return 0
        is_empty = size > 0 and self.held[size - 1] == c"/"
        self.depth += 1
        self.has_root = True
        if self.depth > ELEMENTS_MAX_NESTING:
            raise LimitError(f"its elements are nested more than {ELEMENTS_MAX_NESTING:,} deep")
        self.own_namespaces[self.depth] = 0
        self.own_namespace_bytes[self.depth] = 0
        self.own_base_bytes[self.depth] = 0
        self._enter(self.held)
        if is_empty:
            self._leave()
        return 0

    cdef int _leave(self) except -1:
        self.namespaces -= self.own_namespaces[self.depth]
        self.namespace_bytes -= self.own_namespace_bytes[self.depth]
        self.base_bytes -= self.own_base_bytes[self.depth]
        if self.literal_depth == self.depth:
            self.literal_depth = -1
        self.depth -= 1
        return 0

    cdef int _enter(self, const uint8_t[::1] tag) except -1:
        """Count the attributes of a start tag, and what the parser writes for its names."""
        cdef Py_ssize_t i = 0, size = tag.shape[0], name, name_end, value
        cdef int64_t attributes = 0
        cdef bint has_entities = len(self.sizes) != 0
        while i < size:
            if tag[i] != c"=":
                if tag[i] == c'"' or tag[i] == c"'":
                    i = _closing(tag, i)
                i += 1
                continue
            name_end = i
            while name_end and _is_space(tag[name_end - 1]):
                name_end -= 1
            name = name_end
            while name and not _is_space(tag[name - 1]) and tag[name - 1] != c'"' and (
                tag[name - 1] != c"'"
            ):
                name -= 1
            i += 1
            while i < size and _is_space(tag[i]):
                i += 1
            value = i + 1
            if i < size and (tag[i] == c'"' or tag[i] == c"'"):
                i = _closing(tag, i)
            attributes += 1
            if attributes > ATTRIBUTES_MAX:
                raise LimitError(f"an element has more than {ATTRIBUTES_MAX:,} attributes")
            if name_end > name and (has_entities or tag[name] == c"x" or tag[name_end - 1] == c"e"):
                self._attribute(bytes(tag[name:name_end]), bytes(tag[value:max(i, value)]))
            i += 1
        self.written += (1 + attributes) * max(self.longest, self.base_bytes)
        if self.literal_depth >= 0 and self.literal_depth < self.depth:
            self.written += self.namespace_bytes
        return 0

    cdef int _attribute(self, bytes name, bytes value) except -1:
        cdef int64_t size = len(value)
        if self.sizes and b"&" in value:
            for part in value.split(b"&")[1:]:
                entity, semicolon, _ = part.partition(b";")
                if semicolon:
                    size += self._refer(entity)
        if name.startswith(b"xmlns"):
            self.namespaces += 1
            self.own_namespaces[self.depth] += 1
            self.namespace_bytes += size + len(name)
            self.own_namespace_bytes[self.depth] += size + len(name)
            self.longest = max(self.longest, size)
            if self.namespaces > NAMESPACES_MAX:
                raise LimitError(f"more than {NAMESPACES_MAX:,} namespaces are open")
        elif name.endswith(b":base"):
            self.base_bytes += size
            self.own_base_bytes[self.depth] += size
        elif name.endswith(b"parseType") and self.literal_depth < 0 and (
            value != b"Resource" and value != b"Collection"
        ):
            self.literal_depth = self.depth
        return 0

    # ------------------------------------------------------------ declarations and references

    cdef const uint8_t* _declaration(self, const uint8_t* at, const uint8_t* end) except NULL:
        """Read what follows `<!`: a comment, a section, or the declarations of a document type."""
        cdef const uint8_t* start = at
        while at < end:
            if len(self.held) + (at - start) == 2:
                self.held.extend((<const char*>start)[:at - start])
                start = at
                if self.held == b"--":
                    self.state, self.matched = COMMENT, 0
                    return at
            if len(self.held) + (at - start) == 7:
                self.held.extend((<const char*>start)[:at - start])
                start = at
                if self.held == b"[CDATA[":
                    self.state, self.matched = CDATA, 0
                    return at
            if at[0] == c"<":
                self.brackets += 1
            elif at[0] == c">":
                self.brackets -= 1
                if self.brackets == 0:
                    self.held.extend((<const char*>start)[:at - start])
                    self.sizes = self.entities(bytes(self.held), self.sizes)
                    self.state = TEXT
                    return at + 1
            at += 1
        self.held.extend((<const char*>start)[:at - start])
        if len(self.held) > DECLARATION_MAX_BYTES:
            raise LimitError(f"its document type has more than {DECLARATION_MAX_BYTES:,} bytes")
        return at

    cdef int64_t _refer(self, bytes name) except -1:
        """Count the bytes that the parser writes in place of a reference."""
        cdef int64_t size = self.sizes.get(name, 0)
        self.written += size
        if size and self.written > FREE_BYTES + EXPANSION * self.size:
            shown = name.decode(errors="replace")
            raise LimitError(
                f"references to the entity {shown} make it more than {EXPANSION} times as large"
            )
        return size


cdef enum Within:
    OUTSIDE     # of tokens with other rules
    ESCAPED     # after a backslash outside of strings
    ANGLE       # after `<`
    AN_IRI
    A_COMMENT
    OPENING     # among the quotes that open a string
    A_STRING
    A_LONG_STRING

cdef enum:
    BASE = 0x62617365           # `base`



cdef class TurtleScanner:
    """Turtle, TriG or N3 in pieces: the nesting of its brackets, and the growth of its base IRI."""

    cdef Within within
    cdef int64_t depth
    cdef uint8_t quote          # of the string
    cdef int quotes             # that opened it, or that precede its next character
    cdef bint is_escaped        # whether a backslash precedes the next character of the string
    cdef uint64_t word          # the last bytes of the last token, in lower case
    cdef bint word_ended
    cdef int64_t base_bytes     # of the base IRI, if relative ones have made it longer
    # Of the open IRI
    cdef bint is_base
    cdef bint is_relative       # and replaces the end of a path only
    cdef bint is_behind_scheme
    cdef int64_t iri_bytes

    def read(self, const uint8_t[::1] data not None):
        """Read the next bytes.

        Raises:
            LimitError: where brackets are nested more than `MAX_NESTED_BRACKETS` deep, or the base
                IRI may have more than `BASE_MAX_CHARACTERS`.
        """
        cdef bint fits = True
        if data.shape[0]:
            with nogil:
                fits = self._read(&data[0], &data[0] + data.shape[0])
        if not fits:
            raise LimitError(LONG_BASE if self.base_bytes > BASE_MAX_BYTES else DEEP_BRACKETS)

    @property
    def in_iri(self):
        """Whether an IRI is open, which parsers read to its `>` even if that is on another line."""
        return self.within == AN_IRI

    def recover(self):
        """Forget open brackets: the parser skips a malformed statement with them."""
        self.depth = 0

    cdef bint _read(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        cdef uint8_t c
        while at < end:
            c = at[0]
            if self.within == A_LONG_STRING or self.within == A_STRING:
                at += 1
                if self.is_escaped:
                    self.is_escaped = False
                    self.quotes = 0
                elif c == c"\\":
                    self.is_escaped = True
                elif c != self.quote:
                    self.quotes = 0
                    if c == c"\n" and self.within == A_STRING:
                        self.within = OUTSIDE   # it is malformed
                else:
                    self.quotes += 1
                    if self.within == A_STRING or self.quotes == 3:
                        self.within = OUTSIDE
                continue
            if self.within == OPENING:
                if c == self.quote:
                    at += 1
                    self.quotes += 1
                    if self.quotes == 3:
                        self.within, self.quotes = A_LONG_STRING, 0
                else:
                    self.within = A_STRING if self.quotes == 1 else OUTSIDE
                    self.quotes = 0
                continue
            if self.within == ANGLE:
                self._begin_angle(c)
                # The second of `<<` begins nothing.
                at += c == c"<"
                continue
            at += 1
            if self.within == AN_IRI:
                if not self._read_iri(c):
                    return False
            elif self.within == A_COMMENT:
                if c == c"\n" or c == c"\r":
                    self.within = OUTSIDE
            elif self.within == ESCAPED:
                self.within = OUTSIDE
            elif _is_space(c):
                self.word_ended = True
            elif c == c"<":
                self.within = ANGLE
            else:
                if self.word_ended:
                    self.word, self.word_ended = 0, False
                self.word = self.word << 8 | (c + 32 if c"A" <= c <= c"Z" else c)
                if c == c"(" or c == c"[" or c == c"{":
                    self.depth += 1
                    if self.depth > MAX_NESTED_BRACKETS:
                        return False
                elif c == c")" or c == c"]" or c == c"}":
                    self.depth = max(self.depth - 1, 0)
                elif c == c'"' or c == c"'":
                    self.within, self.quote, self.quotes = OPENING, c, 1
                    self.is_escaped = False
                elif c == c"#":
                    self.within, self.word_ended = A_COMMENT, True
                elif c == c"\\":
                    self.within = ESCAPED
        return True

    cdef void _begin_angle(self, uint8_t c) noexcept nogil:
        """Begin what `<` and the next character begin."""
        cdef uint8_t before = <uint8_t>(self.word >> 32)
        self.within = OUTSIDE if c == c"<" or c == c"=" or _is_space(c) else AN_IRI
        self.is_base = <uint32_t>self.word == <uint32_t>BASE and (
            before == 0 or before == c"@" or before == c"." or before == c"}" or before == c"#"
        )
        self.is_relative = c != c"/" and c != c"?" and c != c"#"
        self.is_behind_scheme = False
        self.iri_bytes = 0
        self.word_ended = True

    cdef bint _read_iri(self, uint8_t c) noexcept nogil:
        """Read a character of an IRI; False if it makes the base IRI too long."""
        if c == c">":
            self.within = OUTSIDE
            if self.is_base:
                self.base_bytes = self.iri_bytes + (self.base_bytes if self.is_relative else 0)
                return self.base_bytes <= BASE_MAX_BYTES
            return True
        self.iri_bytes += 1
        if c == c":" and not self.is_behind_scheme:
            self.is_relative = False
        if c == c":" or c == c"/" or c == c"?" or c == c"#":
            self.is_behind_scheme = True
        return True


cdef const uint8_t* _text_end(
    const uint8_t* at, const uint8_t* end, bint references
) noexcept nogil:
    """The next bracket, or reference if these matter; else the end."""
    cdef const uint8_t* found
    if not references:
        found = <const uint8_t*>memchr(at, c"<", end - at)
        return end if found == NULL else found
    while at < end and at[0] != c"<" and at[0] != c"&":
        at += 1
    return at


cdef inline bint _is_space(uint8_t c) noexcept nogil:
    return c == c" " or c == c"\n" or c == c"\r" or c == c"\t"


cdef inline Py_ssize_t _closing(const uint8_t[::1] tag, Py_ssize_t at) noexcept nogil:
    """The quote that closes the one at a position; the end if none does."""
    cdef const void* found = NULL
    if at + 1 < tag.shape[0]:
        found = memchr(&tag[at + 1], tag[at], tag.shape[0] - at - 1)
    return tag.shape[0] if found == NULL else <const uint8_t*>found - &tag[0]
