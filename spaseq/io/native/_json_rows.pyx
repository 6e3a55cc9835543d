# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lines of JSON → rows: the fields that a mapping reads, each value as the text of its term.

A row is an object. Its fields are named by their path, as the columns of a table are, and a field
is found whenever it first occurs. All other fields are checked and skipped: nothing is built for
them. A string without escapes is, with its quotes, the text of its term, so a cell points into the
input; other values are written into memory that the block owns.

| JSON | RDF |
|---|---|
| string | xsd:string |
| number without fraction and exponent, of any size | xsd:integer |
| number with a fraction | xsd:decimal |
| number with an exponent, NaN, Infinity | xsd:double |
| true, false | xsd:boolean |
| null | unbound |

Texts are in canonical form. A value that is no term of its field is unbound and counted, with the
first example: an object or a list where the mapping reads one value, any other value where it
reads fields, and a string with half of a surrogate pair.

Invariant: every line is checked as a whole, whatever fields are read, so it does not depend on the
queries whether a line is malformed. A block ends before a malformed line; the line after it begins
the next block. Cost: linear in the bytes, whatever they are. Nesting costs a few bytes per level,
to a depth of `MAX_NESTED_JSON`. The names of fields are looked up in a table of at most
`MAX_FIELDS` entries; names beyond it are compared with those of the mapping each time.

Source: RFC 8259.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset, strlen

from spaseq.gpm.native._functions cimport Operand, load_text, set_canonical
from spaseq.io.native._row_events cimport Cell
from spaseq.io.rows.columns import Buffers, Kind, variable_of
from spaseq.rdf.bounded import MAX_NESTED_JSON
from spaseq.rdf.native._nquads cimport not_utf8
from spaseq.rdf.native._terms cimport (
    Arena,
    arena_alloc,
    arena_free,
    arena_reset,
    hash_of,
    mem_calloc,
    mem_free,
    mem_grow,
    raise_no_memory,
)


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* The first byte that is a quote, a backslash or a control character, else end. */
    static inline const char *spaseq_json_plain(const char *at, const char *end) {
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        while (end - at >= 8) {
            uint64_t word, quote, slash, found;
            memcpy(&word, at, 8);
            quote = word ^ ones * '"';
            slash = word ^ ones * '\\\\';
            found = ((quote - ones) & ~quote) | ((slash - ones) & ~slash)
                | ((word - ones * 0x20) & ~word);
            if (found & tops)
                break;
            at += 8;
        }
        while (at < end && *at != '"' && *at != '\\\\' && (uint8_t)*at >= 0x20)
            at++;
        return at;
    }
    """
    const char* plain "spaseq_json_plain"(const char* at, const char* end) noexcept nogil

cdef enum:
    FIELDS = 4096           # names of fields in the table, and fields that are read or listed
    SLOTS = 4 * FIELDS      # of the table, a power of two
    SHOWN = 40              # bytes of a line or a value in a message
    ROOT = 0
    UNKNOWN = -2            # a name that is not in the table
    OTHER = -1              # a field that is not read

MAX_FIELDS = FIELDS
cdef int DEPTH = MAX_NESTED_JSON     # levels of objects and lists

# What a line lacks.
cdef enum Problem:
    NONE
    OBJECT
    KEY
    COLON
    COMMA
    VALUE
    STRING
    ESCAPE
    NUMBER
    TOO_DEEP
    TWICE
    TOO_MANY
    ENCODING

cdef tuple WORDS = (
    "", "", "the name of a field", "a colon", "a comma or the end of {}", "a value",
    "no control character within a string", 'an escape such as \\n or \\u00e9', "a digit",
)  # fmt: skip

# The shapes of the values of a field, as bits.
cdef enum Shape:
    SHAPE_NULL = 1
    SHAPE_STRING = 2
    SHAPE_NUMBER = 4
    SHAPE_BOOLEAN = 8
    SHAPE_OBJECT = 16
    SHAPE_LIST = 32

cdef dict SHAPES = {
    SHAPE_NULL: "null",
    SHAPE_STRING: "string",
    SHAPE_NUMBER: "number",
    SHAPE_BOOLEAN: "boolean",
    SHAPE_OBJECT: "object",
    SHAPE_LIST: "list",
}

cdef enum Ending:
    INTEGER
    DECIMAL
    DOUBLE

# The text that follows the lexical form of each kind of number.
cdef Cell[3] ENDINGS
cdef const char* XSD_INTEGER = b'"^^<http://www.w3.org/2001/XMLSchema#integer>'
cdef const char* XSD_DECIMAL = b'"^^<http://www.w3.org/2001/XMLSchema#decimal>'
cdef const char* XSD_DOUBLE = b'"^^<http://www.w3.org/2001/XMLSchema#double>'


cdef int _list_endings() except -1:
    ENDINGS[<int>Ending.INTEGER].text = XSD_INTEGER
    ENDINGS[<int>Ending.DECIMAL].text = XSD_DECIMAL
    ENDINGS[<int>Ending.DOUBLE].text = XSD_DOUBLE
    for ending in range(3):
        ENDINGS[<int>ending].size = strlen(ENDINGS[<int>ending].text)
    return 0


_list_endings()

cdef const char* TRUE = b'"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
cdef const char* FALSE = b'"false"^^<http://www.w3.org/2001/XMLSchema#boolean>'
cdef size_t TRUE_SIZE = strlen(TRUE)

# A path of names that is read, leads to fields that are read, or is listed.
cdef struct Field:
    int column              # whose value a value here is; -1: none
    bint inner              # whether fields below it are read
    uint32_t shapes         # bits of the values so far
    uint64_t misfits        # values in this block that are no terms here
    uint64_t line           # of the first of them
    const char* example
    size_t example_size

# A name in a field; `field` is the field it leads to.
cdef struct Slot:
    const char* name        # NULL: free
    uint32_t size
    uint64_t hash
    int parent
    int field

# An object or a list that is open.
cdef struct Level:
    char close              # the character that ends it
    int field               # whose fields an object has; OTHER: nothing in it is read
    const char* key         # the name of its current member; NULL in a list
    size_t size


cdef class JsonBlock:
    """The rows of some lines; `taken` is the position behind them in the input.

    If `problem` is not empty, the rows end before the malformed line `line`. `misfits` has, for
    each field with values that are no terms: its path, its variables, how many such values, the
    line of the first one, and its beginning.
    """

    cdef readonly uint64_t first        # the number of the first row
    cdef readonly size_t num_rows
    cdef readonly str problem
    cdef readonly uint64_t line
    cdef readonly Py_ssize_t taken
    cdef readonly list misfits
    cdef bytes data                     # which cells point into
    cdef Arena texts
    cdef Cell* cells                    # `width` for each row
    cdef size_t width
    cdef uint64_t* numbers              # of the lines of the rows
    cdef size_t room

    def __dealloc__(self):
        mem_free(self.cells)
        mem_free(self.numbers)
        arena_free(&self.texts)

    @property
    def lines(self):
        """The address of the line numbers of the rows."""
        return <size_t>self.numbers

    def buffers(self, Py_ssize_t column):
        """The values of a column."""
        if not 0 <= column < <Py_ssize_t>self.width:
            raise IndexError(column)
        return Buffers(
            self, Kind.TERM, 0, <size_t>(self.cells + column), 0, 0, self.width, False
        )

    def values(self, Py_ssize_t column):
        """The texts of the terms of a column; None for rows without one."""
        cdef Cell* cell
        cdef size_t row
        cdef list found = []
        if not 0 <= column < <Py_ssize_t>self.width:
            raise IndexError(column)
        for row in range(self.num_rows):
            cell = &self.cells[row * self.width + column]
            found.append(None if cell.text == NULL else cell.text[:cell.size].decode())
        return found

    cdef Cell* _new_row(self, uint64_t line) except NULL nogil:
        """The cells of a further row, which counts once `num_rows` is increased."""
        cdef Cell* row
        cdef size_t room
        if self.num_rows == self.room:
            room = 2 * self.room + 64
            self.cells = <Cell*>mem_grow(
                self.cells, room * max(self.width, 1), sizeof(Cell), b"rows of JSON"
            )
            self.numbers = <uint64_t*>mem_grow(
                self.numbers, room, sizeof(uint64_t), b"rows of JSON"
            )
            self.room = room
        row = self.cells + self.num_rows * self.width
        memset(row, 0, self.width * sizeof(Cell))
        self.numbers[self.num_rows] = line
        return row


cdef inline const char* _past_blanks(const char* at) noexcept nogil:
    """The next character that is no blank of a line."""
    while at[0] == c" " or at[0] == c"\t" or at[0] == c"\r":
        at += 1
    return at


cdef inline bint _is_digit(char letter) noexcept nogil:
    return c"0" <= letter <= c"9"


cdef inline const char* _behind_digits(const char* at) noexcept nogil:
    """The next character that is no digit."""
    while _is_digit(at[0]):
        at += 1
    return at


cdef int _hex(const char* at) noexcept nogil:
    """The value of four hexadecimal digits; -1 for other characters."""
    cdef int value = 0, i
    cdef char letter
    for i in range(4):
        letter = at[i]
        if c"0" <= letter <= c"9":
            value = value << 4 | (letter - c"0")
        elif c"a" <= (letter | 0x20) <= c"f":
            value = value << 4 | ((letter | 0x20) - c"a" + 10)
        else:
            return -1
    return value


cdef const char* _string_end(
    const char* at, const char* end, bint* escaped, int* problem
) noexcept nogil:
    """The closing quote of a string whose opening quote is before `at`.

    If there is none, `problem` is set, and the result is where it is.
    """
    escaped[0] = False
    while True:
        at = plain(at, end)
        if at < end and at[0] == c'"':
            return at
        if at == end or at[0] != c"\\":
            problem[0] = Problem.STRING
            return at
        escaped[0] = True
        if at[1] == c"u":
            if _hex(at + 2) < 0:
                problem[0] = Problem.ESCAPE
                return at
            at += 6
        elif at[1] in (c'"', c"\\", c"/", c"b", c"f", c"n", c"r", c"t"):
            at += 2
        else:
            problem[0] = Problem.ESCAPE
            return at


cdef char* _unescape(const char* at, const char* end, char* to) noexcept nogil:
    """Write a string without its escapes; returns its end, or NULL for half a surrogate pair.

    The result is no longer than the string.
    """
    cdef uint32_t point, low
    cdef char letter
    while at < end:
        if at[0] != c"\\":
            to[0] = at[0]
            to += 1
            at += 1
            continue
        letter = at[1]
        at += 2
        if letter != c"u":
            if letter == c"b":
                letter = c"\b"
            elif letter == c"f":
                letter = c"\f"
            elif letter == c"n":
                letter = c"\n"
            elif letter == c"r":
                letter = c"\r"
            elif letter == c"t":
                letter = c"\t"
            to[0] = letter
            to += 1
            continue
        point = <uint32_t>_hex(at)
        at += 4
        if 0xD800 <= point < 0xE000:
            if point >= 0xDC00 or end - at < 6 or at[0] != c"\\" or at[1] != c"u":
                return NULL
            low = <uint32_t>_hex(at + 2)
            if not 0xDC00 <= low < 0xE000:
                return NULL
            at += 6
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        if point < 0x80:
            to[0] = <char>point
            to += 1
        elif point < 0x800:
            to[0] = <char>(0xC0 | point >> 6)
            to[1] = <char>(0x80 | (point & 0x3F))
            to += 2
        elif point < 0x10000:
            to[0] = <char>(0xE0 | point >> 12)
            to[1] = <char>(0x80 | (point >> 6 & 0x3F))
            to[2] = <char>(0x80 | (point & 0x3F))
            to += 3
        else:
            to[0] = <char>(0xF0 | point >> 18)
            to[1] = <char>(0x80 | (point >> 12 & 0x3F))
            to[2] = <char>(0x80 | (point >> 6 & 0x3F))
            to[3] = <char>(0x80 | (point & 0x3F))
            to += 4
    return to


cdef class JsonRows:
    """Reads the rows of one input, block after block.

    Args:
        names: the variables of the columns, in order; None to list the fields.
    """

    cdef readonly uint64_t line     # the number of lines read
    cdef uint64_t row               # the number of rows read, including malformed ones
    cdef list names
    cdef list paths                 # by field: its path
    cdef list variables             # by field: the variables that are read from it or below it
    cdef size_t width
    cdef Field* fields_
    cdef int field_count
    cdef Slot* slots
    cdef uint32_t slot_count
    cdef Arena keys                 # the names of the table
    cdef Arena scratch
    cdef Level* levels
    cdef int depth                  # of the malformed place
    cdef JsonBlock block            # that is being read
    cdef bint has_misfits

    def __cinit__(self, names):
        self.names = None if names is None else list(names)
        self.width = 0 if names is None else len(self.names)
        self.paths, self.variables = [()], [()]
        self.fields_ = <Field*>mem_calloc(FIELDS + 1, sizeof(Field))
        self.slots = <Slot*>mem_calloc(SLOTS, sizeof(Slot))
        self.levels = <Level*>mem_calloc(DEPTH + 1, sizeof(Level))
        self.fields_[ROOT].column = -1
        self.fields_[ROOT].inner = True
        self.field_count = 1

    def __dealloc__(self):
        mem_free(self.fields_)
        mem_free(self.slots)
        mem_free(self.levels)
        arena_free(&self.keys)
        arena_free(&self.scratch)

    # ---------------------------------------------------------------- lines

    def read(self, bytes data not None, Py_ssize_t start, Py_ssize_t stop):
        """The rows of the lines data[start:stop], up to a malformed one.

        The last line need not end with a line feed if `stop` is the end of the data.
        """
        cdef JsonBlock block = JsonBlock()
        cdef const char* base = data
        cdef const char* at = base + start
        cdef const char* end = base + stop
        cdef const char* close = at
        cdef const char* place = at
        cdef int problem = Problem.NONE
        if not 0 <= start <= stop <= len(data):
            raise ValueError("no part of the data")
        if stop < len(data) and start < stop and base[stop - 1] != c"\n":
            raise ValueError("the last line is not whole")
        block.data, block.width, block.first = data, self.width, self.row + 1
        block.problem, block.misfits = "", []
        self.block, self.has_misfits = block, False
        if self.line == 0 and end - at >= 3 and memcmp(at, b"\xef\xbb\xbf", 3) == 0:
            at += 3
        with nogil:
            while at < end and problem == Problem.NONE:
                close = <const char*>memchr(at, c"\n", end - at)
                if close == NULL:
                    close = end
                self.line += 1
                place = at
                problem = self._line(&place, close)
                if problem != Problem.NONE:
                    break
                at = close + 1
        if problem != Problem.NONE:
            block.problem, block.line = self._message(problem, at, place, close, base), self.line
            self.row += 1
            at = close + 1
        self.row += block.num_rows
        block.taken = min(at - base, stop)
        if self.has_misfits:
            self._list_misfits(block)
        self.block = None
        return block

    cdef int _line(self, const char** place, const char* end) except -1 nogil:
        """Add the rows of a line; after a problem, `place` is where it is."""
        cdef const char* at = place[0]
        cdef int problem
        cdef const char* invalid = not_utf8(at, end)
        if invalid != end:
            place[0] = invalid
            return Problem.ENCODING
        while True:
            at = _past_blanks(at)
            place[0] = at
            if at >= end:
                return Problem.NONE
            self.depth = 0
            if at[0] != c"{":
                return Problem.OBJECT
            problem = self._object(place, end, self.block._new_row(self.line))
            if problem != Problem.NONE:
                return problem
            self.block.num_rows += 1
            at = place[0]

    cdef int _object(self, const char** place, const char* end, Cell* row) except -1 nogil:
        """Read an object into the cells of a row."""
        cdef const char* at = place[0] + 1
        cdef const char* begin
        cdef Level* level = self.levels
        cdef int problem = Problem.NONE
        cdef bint escaped = False
        cdef bint first = True          # whether the level has had no member
        cdef bint after = False         # whether a member has just ended
        cdef int field
        cdef char letter
        level.close, level.field, level.key, level.size = c"}", ROOT, NULL, 0
        self.depth = 0
        while True:
            at = _past_blanks(at)
            place[0] = at
            letter = at[0]
            if letter == level.close and (after or first):
                at += 1
                if self.depth == 0:
                    place[0] = at
                    return Problem.NONE
                self.depth -= 1
                level -= 1
                after, first = True, False
                continue
            if after:
                if letter != c",":
                    return Problem.COMMA
                at += 1
                after = False
                level.key = NULL
                continue
            first = False
            field = OTHER
            if level.close == c"}":
                if letter != c'"':
                    return Problem.KEY
                begin = at + 1
                at = _string_end(begin, end, &escaped, &problem)
                if problem != Problem.NONE:
                    place[0] = at
                    return problem
                level.key, level.size = begin, at - begin
                if level.field >= 0:
                    field = self._field(level.field, begin, at - begin, escaped)
                    if field == UNKNOWN:
                        return Problem.TOO_MANY
                at = _past_blanks(at + 1)
                place[0] = at
                if at[0] != c":":
                    return Problem.COLON
                at = _past_blanks(at + 1)
                place[0] = at
                letter = at[0]
            if letter == c'"':
                begin = at
                at = _string_end(begin + 1, end, &escaped, &problem)
                if problem != Problem.NONE:
                    place[0] = at
                    return problem
                at += 1
                if field >= 0:
                    problem = self._take_text(field, begin, at, escaped, row)
                    if problem != Problem.NONE:
                        return problem
            elif letter == c"{" or letter == c"[":
                if self.depth == DEPTH - 1:
                    return Problem.TOO_DEEP
                if field >= 0 and not self._open(field, letter == c"{", at, end):
                    field = OTHER
                self.depth += 1
                level += 1
                level.close = c"}" if letter == c"{" else c"]"
                level.field, level.key, level.size = field, NULL, 0
                at += 1
                first = True
                continue
            else:
                problem = self._bare(&at, field, row)
                if problem != Problem.NONE:
                    place[0] = at
                    return problem
            after = True

    # ---------------------------------------------------------------- values

    cdef bint _open(
        self, int number, bint is_object, const char* at, const char* end
    ) noexcept nogil:
        """Whether fields of an object or list are read."""
        cdef Field* field = &self.fields_[number]
        field.shapes |= Shape.SHAPE_OBJECT if is_object else Shape.SHAPE_LIST
        if is_object and field.inner:
            return True
        self._misfit(field, at, end)
        return False

    cdef inline void _misfit(self, Field* field, const char* at, const char* end) noexcept nogil:
        """Count a value that is no term of its field."""
        if self.names is None:
            return
        if field.misfits == 0:
            field.line = self.line
            field.example, field.example_size = at, end - at
        field.misfits += 1
        self.has_misfits = True

    cdef Cell* _cell(
        self, int number, Shape shape, const char* at, const char* end, Cell* row
    ) noexcept nogil:
        """The cell for a value; NULL if it is not read."""
        cdef Field* field = &self.fields_[number]
        field.shapes |= shape
        if field.column >= 0:
            return &row[field.column]
        if field.inner and shape != Shape.SHAPE_NULL:
            self._misfit(field, at, end)
        return NULL

    cdef int _take_text(
        self, int field, const char* at, const char* end, bint escaped, Cell* row
    ) except -1 nogil:
        """Take a string with its quotes as the value of a field."""
        cdef Cell* cell = self._cell(field, Shape.SHAPE_STRING, at, end, row)
        cdef char* text
        cdef char* behind
        if cell == NULL:
            return Problem.NONE
        if cell.text != NULL:
            return Problem.TWICE
        if not escaped:
            cell.text, cell.size = at, end - at
            return Problem.NONE
        text = <char*>self._room(end - at)
        text[0] = c'"'
        behind = _unescape(at + 1, end - 1, text + 1)
        if behind == NULL:
            self._misfit(&self.fields_[field], at, end)
            return Problem.NONE
        behind[0] = c'"'
        cell.text, cell.size = text, behind + 1 - text
        return Problem.NONE

    cdef void* _room(self, size_t size) except NULL nogil:
        """Memory of the block."""
        cdef void* found = arena_alloc(&self.block.texts, size)
        if found == NULL:
            raise_no_memory(b"rows of JSON")
        return found

    cdef int _bare(self, const char** place, int field, Cell* row) except -1 nogil:
        """Take a number, true, false or null as the value of a field, or skip it."""
        cdef const char* at = place[0]
        cdef const char* begin = at
        cdef Cell* cell
        cdef Ending ending = Ending.INTEGER
        cdef bint negative = at[0] == c"-"
        if at[0] == c"t" and _follows(at, b"true", 4):
            return self._constant(place, 4, field, Shape.SHAPE_BOOLEAN, TRUE, row)
        if at[0] == c"f" and _follows(at, b"false", 5):
            return self._constant(place, 5, field, Shape.SHAPE_BOOLEAN, FALSE, row)
        if at[0] == c"n" and _follows(at, b"null", 4):
            return self._constant(place, 4, field, Shape.SHAPE_NULL, NULL, row)
        at += negative
        if at[0] == c"N" or at[0] == c"I":
            return self._not_finite(place, field, negative, row)
        if not _is_digit(at[0]):
            if negative:
                place[0] = at
            return Problem.NUMBER if negative else Problem.VALUE
        at = at + 1 if at[0] == c"0" else _behind_digits(at)
        place[0] = at
        if at[0] == c".":
            ending = Ending.DECIMAL
            place[0] = at = _behind_digits(at + 1)
            if not _is_digit(at[-1]):
                return Problem.NUMBER
        if at[0] | 0x20 == c"e":
            ending = Ending.DOUBLE
            at += 1
            place[0] = at = _behind_digits(at + (at[0] == c"+" or at[0] == c"-"))
            if not _is_digit(at[-1]):
                return Problem.NUMBER
        if field >= 0:
            cell = self._cell(field, Shape.SHAPE_NUMBER, begin, at, row)
            if cell != NULL:
                if cell.text != NULL:
                    return Problem.TWICE
                self._take_number(cell, begin, at, ending)
        return Problem.NONE

    cdef int _take_number(
        self, Cell* cell, const char* at, const char* end, Ending ending
    ) except -1 nogil:
        """Write the term of a number in canonical form."""
        cdef Operand given, form
        if ending == Ending.DECIMAL:
            while end[-1] == c"0":
                end -= 1
            if end[-1] == c".":
                end -= 1
        if end - at == 2 and at[0] == c"-" and at[1] == c"0":
            at += 1
        self._write(cell, at, end - at, ending)
        if ending == Ending.DOUBLE:
            arena_reset(&self.scratch)
            load_text(&given, cell.text, <uint32_t>cell.size)
            given.whole = NULL
            given.term = 0
            set_canonical(&form, &given, &self.scratch)
            self._write(cell, form.text, form.size, ending)
        return 0

    cdef int _write(
        self, Cell* cell, const char* lexical, size_t size, Ending ending
    ) except -1 nogil:
        cdef const Cell* rest = &ENDINGS[<int>ending]
        cdef char* text = <char*>self._room(size + 1 + rest.size)
        text[0] = c'"'
        memcpy(text + 1, lexical, size)
        memcpy(text + 1 + size, rest.text, rest.size)
        cell.text, cell.size = text, size + 1 + rest.size
        return 0

    cdef int _not_finite(
        self, const char** place, int field, bint negative, Cell* row
    ) except -1 nogil:
        """Take NaN or an infinity, which JSON lacks and many libraries write."""
        cdef const char* at = place[0] + negative
        cdef const char* lexical
        cdef const char* begin = place[0]
        cdef Cell* cell
        if _follows(at, b"NaN", 3):
            lexical = b"NaN"
            place[0] = at + 3
        elif _follows(at, b"Infinity", 8):
            lexical = b"-INF" if negative else b"INF"
            place[0] = at + 8
        elif _follows(at, b"Inf", 3):
            lexical = b"-INF" if negative else b"INF"
            place[0] = at + 3
        else:
            return Problem.VALUE
        if field >= 0:
            cell = self._cell(field, Shape.SHAPE_NUMBER, begin, place[0], row)
            if cell != NULL:
                if cell.text != NULL:
                    return Problem.TWICE
                self._write(cell, lexical, 4 if lexical[0] == c"-" else 3, Ending.DOUBLE)
        return Problem.NONE

    cdef int _constant(
        self, const char** place, int size, int field, Shape shape, const char* text, Cell* row
    ) noexcept nogil:
        """Take true, false, or null, whose text is NULL."""
        cdef Cell* cell
        cdef const char* at = place[0]
        place[0] = at + size
        if field >= 0:
            cell = self._cell(field, shape, at, place[0], row)
            if cell != NULL and text != NULL:
                if cell.text != NULL:
                    return Problem.TWICE
                cell.text, cell.size = text, TRUE_SIZE + (text == FALSE)
        return Problem.NONE

    # ---------------------------------------------------------------- fields

    cdef int _field(
        self, int parent, const char* name, size_t size, bint escaped
    ) except? UNKNOWN nogil:
        """The field of a name within a field, or OTHER; UNKNOWN: there are too many fields."""
        cdef uint64_t hash
        cdef uint32_t place
        cdef Slot* slot
        cdef char* text
        cdef char* behind
        if escaped:
            arena_reset(&self.scratch)
            text = <char*>arena_alloc(&self.scratch, size + 1)
            if text == NULL:
                raise_no_memory(b"rows of JSON")
            behind = _unescape(name, name + size, text)
            if behind == NULL:
                return OTHER
            name, size = text, behind - text
        hash = hash_of(name, <uint32_t>size) + <uint64_t>parent * <uint64_t>0x9E3779B97F4A7C15
        place = <uint32_t>(hash ^ hash >> 32) & (SLOTS - 1)
        while True:
            slot = &self.slots[place]
            if slot.name == NULL:
                return self._new_field(parent, name, size, hash, slot)
            if (
                slot.hash == hash
                and slot.size == size
                and slot.parent == parent
                and memcmp(slot.name, name, size) == 0
            ):
                return slot.field
            place = (place + 1) & (SLOTS - 1)

    cdef int _new_field(
        self, int parent, const char* name, size_t size, uint64_t hash, Slot* slot
    ) except? UNKNOWN with gil:
        """The field of a name that is not in the table, which receives it if it has room."""
        cdef int number = OTHER
        cdef Field* field
        cdef char* kept
        path = (*self.paths[parent], name[:size].decode())
        variable = variable_of(path)
        if self.names is None:
            below = ()
            wanted = True
        else:
            below = tuple(
                each for each in self.names if each == variable or each.startswith(variable + "_")
            )
            wanted = bool(below)
        if wanted:
            if self.field_count > FIELDS or self.slot_count >= FIELDS:
                return OTHER if self.names is None else UNKNOWN
            number = self.field_count
            field = &self.fields_[number]
            field.column = self.names.index(variable) if variable in below else -1
            field.inner = self.names is None or len(below) > (variable in below)
            self.field_count += 1
            self.paths.append(path)
            self.variables.append(below)
        elif self.slot_count >= FIELDS - 1024:
            return OTHER        # the rest of the table is for names that are read
        kept = <char*>arena_alloc(&self.keys, size + 1)
        if kept == NULL:
            raise MemoryError
        memcpy(kept, name, size)
        slot.name, slot.size, slot.hash, slot.parent = kept, <uint32_t>size, hash, parent
        slot.field = number
        self.slot_count += 1
        return number

    def fields(self):
        """The fields so far: their paths, each with the shapes of its values."""
        cdef int i
        return [
            (
                self.paths[i],
                frozenset(
                    name for bit, name in SHAPES.items() if self.fields_[i].shapes & <uint32_t>bit
                ),
            )
            for i in range(1, self.field_count)
        ]

    cdef int _list_misfits(self, JsonBlock block) except -1:
        """List the fields with values that are no terms, and forget them."""
        cdef int i
        cdef Field* field
        for i in range(1, self.field_count):
            field = &self.fields_[i]
            if field.misfits:
                variables = self.variables[i]
                block.misfits.append(
                    (
                        self.paths[i],
                        variables,
                        field.misfits,
                        field.line,
                        _kind(field.example, field.example_size),
                    )
                )
                field.misfits = 0
        return 0

    # ---------------------------------------------------------------- messages

    cdef str _message(
        self,
        int problem,
        const char* begin,
        const char* place,
        const char* end,
        const char* base,
    ):
        """What is wrong with a line at a place."""
        cdef str where = self._path()
        cdef str of = f" in the field {where}" if where else ""
        cdef str what
        if problem == Problem.ENCODING:
            return f"not UTF-8: byte {place - begin + 1} of the line is {<uint8_t>place[0]:#04x}"
        if problem == Problem.OBJECT:
            hint = ""
            if place[0] == c"[":
                hint = "; a row is an object of its own line: jq -c '.[]' FILE writes a list so"
            return f"not a JSON object: {_shown(place, end - place)}{hint}"
        if problem == Problem.TOO_DEEP:
            return f"its JSON is nested more than {DEPTH} deep{self._beginning()}"
        if problem == Problem.TWICE:
            return f"the field {where} occurs twice"
        if problem == Problem.TOO_MANY:
            return f"more than {FIELDS:,} fields that the mapping could read"
        if _past_blanks(place) >= end:
            cut = "the line is cut" if end[0] == c"\n" else "the last line is cut"
            return f"not JSON: {cut}{of}"
        what = WORDS[problem]
        if problem == Problem.COMMA:
            level = self.levels[self.depth]
            what = what.format("the object" if level.close == c"}" else "the list")
        return f"not JSON{of}: {what} is expected, not {_shown(place, end - place)}"

    cdef str _path(self):
        """The path of the field that is being read."""
        cdef int i
        cdef list names = []
        for i in range(min(self.depth + 1, 8)):
            if self.levels[i].key != NULL:
                names.append(self.levels[i].key[:self.levels[i].size].decode("utf-8", "replace"))
        text = ".".join(names)
        return text if len(text) <= 2 * SHOWN else text[: 2 * SHOWN] + "…"

    cdef str _beginning(self):
        where = self._path()
        return f", in the field {where}" if where else ""


cdef inline bint _follows(const char* at, const char* text, size_t size) noexcept nogil:
    """Whether a text follows; the character behind the line equals none of a text."""
    cdef size_t i
    for i in range(size):
        if at[i] != text[i]:
            return False
    return True


cdef str _kind(const char* at, size_t size):
    """A value in a message: an object or a list, or its beginning."""
    if at[0] == c"{":
        return "an object"
    return "a list" if at[0] == c"[" else _shown(at, size)


cdef str _shown(const char* at, size_t size):
    """The beginning of a value or of the rest of a line."""
    text = at[:min(size, SHOWN)].decode("utf-8", "ignore").rstrip("\r\n")
    return text if size <= SHOWN else f"{text}…"
