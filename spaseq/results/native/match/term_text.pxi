"""Texts of terms → N-Triples and CSV, as `str` of a pyoxigraph term and `spaseq.io` write them.

The texts are those of records (`spaseq.rdf.native._terms`): N-Quads with escapes resolved. Cost:
linear.
Source: RDF 1.2 N-Triples, section 3.4, *canonical N-Triples*; SPARQL 1.1 Query Results CSV.
"""

from libc.stdio cimport snprintf
from libc.string cimport memcpy

from spaseq.rdf.native._terms cimport PARTS_END, last_quote, second_part, third_part


cdef int put_escaped(Text* text, const char* what, size_t size) except -1:
    """Append a lexical form with the escapes of N-Triples, without quotes."""
    # An escaped byte has at most six characters.
    cdef char* begin = room_for(text, 6 * size)
    cdef char* out = begin
    cdef unsigned char letter
    cdef size_t plain
    while True:
        plain = plain_bytes(what, size, N_TRIPLES)
        memcpy(out, what, plain)
        out += plain
        if plain == size:
            break
        what += plain
        size -= plain
        letter = <unsigned char>what[0]
        if letter == 0xEF:
            # U+FFFE and U+FFFF are no characters; other letters begin with this byte as well.
            if <unsigned char>what[1] == 0xBF and <unsigned char>what[2] >= 0xBE:
                out += snprintf(out, 7, b"\\uFFF%c", <int>(c"E" + <unsigned char>what[2] - 0xBE))
            else:
                memcpy(out, what, 3)
                out += 3
            what += 3
            size -= 3
            continue
        what += 1
        size -= 1
        out[0] = c"\\"
        out[1] = (
            c"n" if letter == c"\n" else c"r" if letter == c"\r" else c"t" if letter == c"\t"
            else c"b" if letter == 8 else c"f" if letter == 12 else <char>letter
        )
        if out[1] < 0x20 or out[1] == 0x7F:
            snprintf(out + 1, 6, b"u%04X", <int>letter)
            out += 4
        out += 2
    text.size += out - begin
    return 0


cdef int put_triple_term(Text* text, const char* term, uint32_t size) except -1:
    """Append a triple term in N-Triples."""
    cdef uint32_t third, quote, depth = 0
    while is_triple(term):
        third = third_part(term, second_part(term))
        put(text, term, third)
        term += third
        size -= third + PARTS_END
        depth += 1
    if term[0] == c'"':
        quote = last_quote(term, size)
        put(text, term, 1)
        put_escaped(text, term + 1, quote - 1)
        put(text, term + quote, size - quote)
    else:
        put(text, term, size)
    while depth:
        put(text, b" )>>", PARTS_END)
        depth -= 1
    return 0


cdef int put_csv_triple(Text* text, const TermRecord* term) except -1:
    """Append a triple term in N-Triples as a cell of CSV."""
    cdef size_t start = text.size
    cdef bytes cell
    put_triple_term(text, term.text, term.size)
    if plain_bytes(text.begin + start, text.size - start, CSV) == text.size - start:
        return 0
    cell = text.begin[start:text.size]
    text.size = start
    return put_bytes(text, b'"' + cell.replace(b'"', b'""') + b'"')


cdef int put_csv_cell(Text* text, const TermRecord* term) except -1:
    """Append an IRI or a lexical form alone, or a blank node; in quotes if CSV requires it."""
    cdef const char* value = term.text + 1
    cdef size_t size = term.lexical, plain
    if is_triple(term.text):
        return put_csv_triple(text, term)
    if term.text[0] == c"_":
        return put(text, term.text, term.size)
    plain = plain_bytes(value, size, CSV)
    if plain == size:
        return put(text, value, size)
    put(text, b'"', 1)
    while True:
        plain = 0
        while plain < size and value[plain] != c'"':
            plain += 1
        put(text, value, plain)
        if plain == size:
            break
        put(text, b'""', 2)
        value += plain + 1
        size -= plain + 1
    return put(text, b'"', 1)
