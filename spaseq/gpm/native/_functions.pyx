# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A function's name → its number, and a call by number on operands.

What is not here is called in Python by its name (`spaseq.gpm.python.functions`), with the same
result. Invariant: no argument of a call is an ERROR. Cost: that of the function.
"""

from spaseq.gpm.native._arithmetic cimport absolute, ceiling, floored, rounded
from spaseq.gpm.native._moments cimport Field, take_field
from spaseq.gpm.native._operators cimport (
    ERROR,
    language_size,
    set_canonical,
    set_datatype,
    set_string,
    write_term,
)
from spaseq.gpm.native._strings cimport (
    after,
    before,
    begins,
    change_case,
    concatenate,
    contains,
    ends,
    language_matches,
    string_length,
    substring,
)
from spaseq.rdf._numerals cimport is_numeral
from spaseq.rdf._values cimport Kind

from spaseq.sparql.builtins import BUILTINS

cdef dict NUMBERS = {name: Native[name] for name in BUILTINS if name in Native.__members__}


cdef Native native_of(str name) except *:
    """The number of a function, PYTHON where it has none."""
    return NUMBERS.get(name, Native.PYTHON)



cdef int _str(Operand* a, Arena* scratch) except -2 nogil:
    """An IRI, or a literal's form as written."""
    if is_numeral(a.term):
        write_term(a, scratch)
    if a.kind == Kind.BLANK:
        a.kind = ERROR
    elif a.whole != NULL or a.kind <= Kind.LANG:
        set_string(a, a.text, a.size)
    else:
        set_canonical(a, a, scratch)
    return 1


cdef void _lang(Operand* a) noexcept nogil:
    if a.kind <= Kind.BLANK:
        a.kind = ERROR
    elif a.kind == Kind.LANG:
        set_string(a, a.tag, language_size(a))
    else:
        set_string(a, b"", 0)


cdef int call_native(Native native, Operand* a, int count, Arena* scratch) except -2 nogil:
    """Put the result in the place of the first argument: 1, or 0 where Python must be asked."""
    if native == Native.PYTHON:
        return 0
    if native == Native.STR:
        return _str(a, scratch)
    if native == Native.LANG:
        _lang(a)
    elif native == Native.LANGMATCHES:
        return language_matches(a, a + 1)
    elif native == Native.DATATYPE:
        set_datatype(a, a)
    elif native == Native.STRLEN:
        string_length(a)
    elif native == Native.SUBSTR:
        if (a + 1).kind == Kind.WIDE or (a + count - 1).kind == Kind.WIDE:
            return 0
        substring(a, a + 1, a + 2 if count == 3 else NULL)
    elif native == Native.UCASE or native == Native.LCASE:
        return change_case(a, native == Native.UCASE, scratch)
    elif native == Native.CONTAINS:
        contains(a, a + 1)
    elif native == Native.STRSTARTS:
        begins(a, a + 1)
    elif native == Native.STRENDS:
        ends(a, a + 1)
    elif native == Native.STRBEFORE:
        before(a, a + 1)
    elif native == Native.STRAFTER:
        after(a, a + 1)
    elif native == Native.CONCAT:
        concatenate(a, count, scratch)
    elif native == Native.ABS:
        absolute(a, scratch)
    elif native == Native.CEIL:
        ceiling(a, scratch)
    elif native == Native.FLOOR:
        floored(a, scratch)
    elif native == Native.ROUND:
        rounded(a, scratch)
    else:
        return take_field(a, <Field>(Field.YEAR + native - Native.YEAR))
    return 1
