"""Events that another reader has read from the middle of a file → the batch of an `EventReader`.

The other reader began between two events, without knowing the earlier events. Its events therefore
have neither ordinals nor unique blank nodes, their lines are counted from its first line, and
neither their times nor the names of their graphs were compared with earlier events. `adopt` adds
all this. If an event would be an error, it changes nothing, and the caller reads the events again.

Cost: a look-up and an insertion per event, and, if the batch has blank nodes, a look-up for each
term of its triples.
"""

from spaseq.rdf.native._terms cimport TermRecord, Triple, record_of


cdef bint continues(EventReader reader, EventBatch batch) noexcept nogil:
    """Whether the events may follow those of `reader`: in time, and by the names of graphs."""
    cdef const EventRecord* event
    cdef bint begun = reader.begun
    cdef uint32_t i
    cdef int64_t last = reader.last_micros
    for i in range(batch.event_count):
        event = &batch.events[i]
        if event.domain != reader.known_domain:
            return False
        if reader.sorted and begun and event.micros < last:
            return False
        begun = True
        last = event.micros
        if event.name and is_closed(reader, batch, event.name):
            return False
    return True


cdef bint is_closed(EventReader reader, EventBatch batch, term_t name) noexcept nogil:
    """Whether `reader` has closed the graph with this name."""
    cdef const TermRecord* record = record_of(batch, name)
    if record.text[0] == c"_":
        return reader.closed_blanks.find(record.hash, record.text, record.size) != NULL
    return reader.closed.find(record.hash, record.text, record.size) != NULL


cdef int close_name(EventReader reader, EventBatch batch, EventRecord* event) except -1 nogil:
    """Add the name of an event to the names of the closed graphs."""
    cdef const TermRecord* record = record_of(batch, event.name)
    if record.text[0] == c"_":
        return reader.closed_blanks.add(
            record.hash, record.text, record.size, event.line, reader.file_number
        )
    if reader.reuse:
        return 0
    return reader.closed.add(
        record.hash, record.text, record.size, event.line, reader.file_number
    )


cdef int mint(Minter minter, EventBatch batch, EventRecord* event, bint labelled) except -1 nogil:
    """Give an event unique blank nodes, in the order of its triples, with its name last."""
    cdef Triple* triple
    cdef uint32_t i
    minter.forget()
    if labelled:
        for i in range(event.first, event.end):
            triple = &batch.triples[i]
            if is_blank(batch, triple.subject):
                triple.subject = minter.own(batch, triple.subject)
            if is_blank(batch, triple.object):
                triple.object = minter.own(batch, triple.object)
    if event.name and is_blank(batch, event.name):
        event.name = minter.own(batch, event.name)
    return 0


cdef int enter(
    EventReader reader, EventBatch batch, uint64_t lines, bint labelled
) except -1 nogil:
    """Add the names of the events to the closed graphs; number events, lines and blank nodes."""
    cdef EventRecord* event
    cdef uint32_t i
    for i in range(batch.event_count):
        event = &batch.events[i]
        event.line += lines
        if event.name:
            close_name(reader, batch, event)
        if reader.sorted:
            mint(reader.minter, batch, event, labelled)
            reader.minter.number_event(event)
    return 0


def adopt(EventReader reader not None, EventReader part not None, uint64_t lines) -> bool:
    """Make the events of `part` the next ones of `reader`.

    Args:
        reader: A reader between two events, whose batch is empty.
        part: A reader with the same options and without a minter, which has read without an error
            and is between two events. It must not be used afterwards.
        lines: The number of lines of the file before those that `part` has read.

    Returns:
        False, without any change, if the events may not follow.
    """
    cdef EventBatch batch = part.batch
    cdef uint32_t count = batch.event_count
    if reader.is_open or reader.batch.event_count or part.is_open or part.sorted:
        raise ValueError("events are adopted between two events, by a reader that has none")
    cdef bint follows, labelled = part.labelled
    with nogil:
        follows = continues(reader, batch)
        if follows:
            enter(reader, batch, lines, labelled)
    if not follows:
        return False
    if count:
        reader.begun = True
        reader.last_micros = batch.events[count - 1].micros
        reader.last_stamp = batch.events[count - 1].stamp
        reader.place += count
    else:
        reader.last_stamp = moved(reader.batch, reader.last_stamp, batch)
    reader.refused = 0
    reader.unused += part.unused
    reader.untimed += part.untimed
    reader.filled |= part.filled
    reader.begin(batch)
    return True
