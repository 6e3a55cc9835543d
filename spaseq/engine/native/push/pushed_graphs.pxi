"""Graphs of pushed events, as text or of rdflib, → triples of a batch, without terms of pyoxigraph.

N-Triples and N-Quads are read by the compiled reader of files. rdflib's triples come from its
store, and the texts of its terms are looked up in the table of the batch. A graph with anything
unusual is left to `facts_of` (spaseq/engine/python_graphs.py), which decides what is an error, and
which names the blank nodes of text. Triples that no query can use are counted and not stored.

Cost: linear in the text, or in the triples.
"""

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

import pyoxigraph as ox

from spaseq.rdf.native._framing cimport EventReader
from spaseq.rdf.native._nquads cimport Beginning, LineReader, is_iri
from spaseq.rdf.native._terms cimport (
    EventBatch,
    Keep,
    Relevance,
    hash_of,
    keep_of,
    keeps_object,
    known_term,
    mem_free,
    mem_realloc,
    term_t,
)

cdef enum:
    OTHER
    IRI
    BLANK
    LITERAL

cdef enum:
    MAX_CLASSES = 1000      # classes of terms that are remembered

cdef const char* XSD_STRING = b"http://www.w3.org/2001/XMLSchema#string"

cdef const char* RDF = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"

cdef dict KINDS = {"URIRef": IRI, "BNode": BLANK, "Literal": LITERAL}


class NotSure(Exception):
    """The compiled reader leaves the text to pyoxigraph."""


class Questions:
    """What `EventReader` asks about statements that are not triples."""

    def among_triples(self, *_):
        raise NotSure


@cython.final
cdef class GraphReader:
    """Reads graphs of events into a batch.

    Args:
        batch: the batch, which the caller owns.
        relevance: the triples that queries can use.
    """

    cdef EventBatch batch
    cdef Relevance relevance
    cdef EventReader events         # of text; None until the first one
    cdef LineReader lines
    cdef dict kinds                 # by class: the kind of its terms
    cdef dict labels                # of the event's blank nodes: their numbers
    cdef bytes scope                # the prefix of the labels of its blank nodes
    cdef char* text                 # the term that is being looked up
    cdef uint32_t room, size

    def __cinit__(self, EventBatch batch not None, Relevance relevance not None):
        self.batch = batch
        self.relevance = relevance
        self.kinds = {}

    def __dealloc__(self):
        mem_free(self.text)

    cdef int64_t read(self, object graph, int64_t event) except -2:
        """Append the triples of a graph; returns the number of all its triples.

        -1 if the graph is left to `facts_of`; the caller then removes what was appended.
        """
        if type(graph) is bytes:
            return self.read_text(graph)
        if type(graph) is str:
            try:
                return self.read_text((<str>graph).encode())
            except UnicodeEncodeError:
                return -1
        if type(graph).__name__ == "Graph" and type(graph).__module__ == "rdflib.graph":
            return self.read_graph(graph, event)
        return -1

    # ------------------------------------------------------------ text

    cdef int64_t read_text(self, bytes text) except -2:
        """Read N-Triples or N-Quads."""
        cdef EventReader events = self.events
        if events is None:
            events = EventReader(self.relevance, Questions(), self.batch.stream, None, 1)
            events.start_file("", "whole", 0, (), False, False)
            events.begin(self.batch)
            self.events = events
            self.lines = LineReader(events, True)
        events.is_open = False
        events.statements = 0
        events.has_labels = False
        try:
            if self.lines.read(text, 0, len(text)) < len(text):
                return -1
        except NotSure:
            return -1
        if events.has_labels:
            return -1
        return events.statements

    # ------------------------------------------------------------ rdflib

    cdef int64_t read_graph(self, object graph, int64_t event) except -2:
        """Read the triples of an rdflib graph."""
        cdef EventBatch batch = self.batch
        cdef term_t start, link, value
        cdef int kind_of_subject, kind_of_value
        cdef int64_t count = 0
        cdef Keep keep
        self.labels = {}
        self.scope = f"_:e{event}b".encode()
        try:
            # What the graph itself iterates over, without its generator.
            for triple, _ in graph.store.triples((None, None, None), context=graph):
                subject, predicate, term = triple
                kind_of_subject = self.kind_of(subject)
                kind_of_value = self.kind_of(term)
                if (
                    kind_of_subject not in (IRI, BLANK) or kind_of_value == OTHER
                    or self.kind_of(predicate) != IRI
                ):
                    return -1
                count += 1
                link = self.iri(predicate)
                keep = keep_of(self.relevance, link)
                # As in `facts_of`: labels of blank nodes do not depend on what queries use, and
                # every term is checked.
                start = self.end(subject, kind_of_subject)
                value = self.end(term, kind_of_value)
                if link == 0 or start == 0 or value == 0:
                    return -1
                if keep == Keep.EVERY or keep == Keep.SOME and keeps_object(
                    self.relevance, link, value
                ):
                    batch.add_triple(start, link, value)
        except (ValueError, TypeError, AttributeError):
            return -1
        return count

    cdef int kind_of(self, object term) except -1:
        """The kind of a term of rdflib, by the name of its class, as in `facts_of`."""
        cls = type(term)
        found = self.kinds.get(cls)
        if found is None:
            found = OTHER
            if issubclass(cls, str) and hasattr(cls, "n3"):
                found = KINDS.get(cls.__name__, OTHER)
            if len(self.kinds) < MAX_CLASSES:
                self.kinds[cls] = found
        return found

    cdef int put(self, const char* text, Py_ssize_t size) except -1:
        """Append to the text of the term."""
        cdef char* moved
        cdef size_t wanted = <size_t>self.size + size
        if wanted > 0x7FFFFFFF:
            raise ValueError("the term is too long")
        if wanted > self.room:
            moved = <char*>mem_realloc(self.text, 2 * wanted + 256)
            if moved == NULL:
                raise MemoryError
            self.text = moved
            self.room = <uint32_t>min(2 * wanted + 256, <size_t>0xFFFFFFFF)
        memcpy(self.text + self.size, text, size)
        self.size += <uint32_t>size
        return 0

    cdef int put_string(self, object text) except -1:
        cdef Py_ssize_t size
        cdef const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size)
        return self.put(utf8, size)

    cdef term_t iri(self, object text) except? 0:
        """The number of an IRI.

        Raises:
            ValueError: if it is not an IRI.
        """
        cdef Beginning beginning
        cdef uint64_t hash
        cdef term_t known
        self.size = 0
        self.put(b"<", 1)
        self.put_string(text)
        self.put(b">", 1)
        hash = hash_of(self.text, self.size)
        known = known_term(self.batch, hash, self.text, self.size)
        if known:
            return known
        memset(&beginning, 0, sizeof(Beginning))
        if not is_iri(self.text + 1, self.size - 2, &beginning):
            ox.NamedNode(str(text))
        return self.batch.enter(hash, self.text, self.size, True)

    cdef term_t blank(self, object label) except 0:
        """The node of the event for a label of the graph."""
        cdef uint64_t hash
        cdef bytes text
        cdef term_t known
        found = self.labels.get(str(label))
        if found is not None:
            return found
        text = self.scope + str(len(self.labels)).encode()
        hash = hash_of(text, len(text))
        known = known_term(self.batch, hash, text, <uint32_t>len(text))
        if known == 0:
            known = self.batch.enter(hash, text, <uint32_t>len(text), True)
        self.labels[str(label)] = known
        return known

    cdef term_t literal(self, object term) except? 0:
        """The number of a literal; 0 for an unusual one.

        Raises:
            ValueError: if its datatype is not an IRI.
        """
        cdef Beginning beginning
        cdef uint64_t hash
        cdef term_t known
        cdef uint32_t start
        cdef Py_ssize_t size
        cdef const char* datatype
        language = term.language
        if language:
            return self.batch.encode(ox.Literal(str(term), language=language))
        given = term.datatype
        self.size = 0
        self.put(b'"', 1)
        self.put_string(term)
        self.put(b'"', 1)
        start = 0
        if given is not None:
            datatype = PyUnicode_AsUTF8AndSize(given, &size)
            if size != 39 or memcmp(datatype, XSD_STRING, 39) != 0:
                if size >= 43 and memcmp(datatype, RDF, 43) == 0:
                    return 0    # rdf:langString is no datatype of a literal without a language
                self.put(b"^^<", 3)
                start = self.size
                self.put(datatype, size)
                self.put(b">", 1)
        hash = hash_of(self.text, self.size)
        known = known_term(self.batch, hash, self.text, self.size)
        if known:
            return known
        if start:
            memset(&beginning, 0, sizeof(Beginning))
            if not is_iri(self.text + start, self.size - start - 1, &beginning):
                ox.NamedNode(str(given))
        return self.batch.enter(hash, self.text, self.size, True)

    cdef term_t end(self, object term, int kind) except? 0:
        """The number of a subject or an object; 0 for an unusual literal."""
        if kind == IRI:
            return self.iri(term)
        if kind == BLANK:
            return self.blank(term)
        return self.literal(term)
