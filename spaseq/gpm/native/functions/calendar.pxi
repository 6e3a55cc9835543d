"""Calendar arithmetic on operands: `calendar.fields` and `calendar.add` in C.

This is a separate module because an operator (point ± duration) and functions (YEAR … SECONDS)
share it.

Invariant: results are those of `spaseq.rdf.calendar`, which computes points so far from the year 1
that 128 bits could overflow. Cost: constant.
Source: XPath and XQuery Functions and Operators 3.1, sections 9.5 and 9.7.
"""

from spaseq.rdf.native import _values
from spaseq.rdf.native._literals cimport (
    ATTOS_PER_DAY,
    ATTOS_PER_HOUR,
    ATTOS_PER_MINUTE,
    Form,
    civil,
    days_before,
    days_in_month,
)
from spaseq.rdf.native._terms cimport NO_ZONE

cdef enum Field:
    YEAR_FIELD
    MONTH_FIELD
    DAY_FIELD
    HOURS_FIELD
    MINUTES_FIELD
    SECONDS_FIELD

# Beyond this number and its negative, `calendar` moves a point by months.
cdef int64_t MONTHS_BOUND = 1 << 40

# The fields that a form has: a set of bits by `Field`.
cdef int[16] HAS

HAS[<int>Form.DATE_TIME] = (
    1 << Field.YEAR_FIELD | 1 << Field.MONTH_FIELD | 1 << Field.DAY_FIELD
    | 1 << Field.HOURS_FIELD | 1 << Field.MINUTES_FIELD | 1 << Field.SECONDS_FIELD
)

HAS[<int>Form.DATE] = 1 << Field.YEAR_FIELD | 1 << Field.MONTH_FIELD | 1 << Field.DAY_FIELD

HAS[<int>Form.TIME] = 1 << Field.HOURS_FIELD | 1 << Field.MINUTES_FIELD | 1 << Field.SECONDS_FIELD

HAS[<int>Form.G_YEAR] = 1 << Field.YEAR_FIELD

HAS[<int>Form.G_YEAR_MONTH] = 1 << Field.YEAR_FIELD | 1 << Field.MONTH_FIELD

HAS[<int>Form.G_MONTH] = 1 << Field.MONTH_FIELD

HAS[<int>Form.G_MONTH_DAY] = 1 << Field.MONTH_FIELD | 1 << Field.DAY_FIELD

HAS[<int>Form.G_DAY] = 1 << Field.DAY_FIELD


cdef inline bint _near(int128 instant) noexcept nogil:
    """Whether the sum of two such instants stays within 128 bits."""
    return -(<int128>1 << 125) < instant < <int128>1 << 125


cdef inline int128 _zone_offset(int16_t zone) noexcept nogil:
    """The offset of a time zone from UTC, in atto-seconds."""
    return 0 if zone == NO_ZONE else zone * ATTOS_PER_MINUTE


cdef inline int64_t _days(int128 instant) noexcept nogil:
    """The day of an instant, counted from 0001-01-01."""
    cdef int64_t days = <int64_t>(instant // ATTOS_PER_DAY)
    return days - 1 if instant % ATTOS_PER_DAY < 0 else days


cdef int calendar_field(Operand* a, Field field) noexcept nogil:
    """YEAR … SECONDS in the time zone of the point: 1, or 0 where `calendar` computes it."""
    cdef int64_t year, days
    cdef int month, day
    cdef int128 local
    if a.kind != Kind.POINT or not HAS[a.form] & 1 << field:
        a.kind = ERROR
        return 1
    if not _near(a.exact):
        return 0
    local = a.exact + _zone_offset(a.zone)
    days = _days(local)
    local = local - days * ATTOS_PER_DAY
    set_computed(a, Kind.INTEGER)
    if field == Field.SECONDS_FIELD:
        a.kind = Kind.DECIMAL
        a.exact = local % ATTOS_PER_MINUTE
    elif field == Field.MINUTES_FIELD:
        a.exact = local % ATTOS_PER_HOUR // ATTOS_PER_MINUTE
    elif field == Field.HOURS_FIELD:
        a.exact = local // ATTOS_PER_HOUR
    else:
        civil(days, &year, &month, &day)
        if field == Field.YEAR_FIELD:
            a.exact = year
        elif field == Field.MONTH_FIELD:
            a.exact = month
        elif field == Field.DAY_FIELD:
            a.exact = day
        else:
            a.kind = ERROR
    return 1


cdef int shift(Operand* to, const Operand* moved, const Operand* by, int sign) except -2 nogil:
    """`moved + sign * by` for a dateTime, date or time and a duration, else ERROR."""
    cdef int128 instant = moved.exact, local, offset, seconds
    cdef int64_t months
    cdef int16_t zone = moved.zone
    cdef uint8_t form = moved.form
    if (
        moved.kind != Kind.POINT
        or by.kind != Kind.SPAN
        or form > Form.TIME
        or (form == Form.TIME and by.form == Form.YEAR_MONTH_DURATION)
    ):
        to.kind = ERROR
        return 0
    months = by.months
    seconds = by.exact
    if not (_near(instant) and _near(seconds) and -MONTHS_BOUND < months < MONTHS_BOUND):
        return _shift_in_python(to, moved, by, sign)
    if sign < 0:
        months = -months
        seconds = -seconds
    offset = _zone_offset(zone)
    local = instant + offset
    if form == Form.TIME:
        instant = _days(local) * ATTOS_PER_DAY
        local = local + seconds
        local = instant + (local - _days(local) * ATTOS_PER_DAY)
    else:
        if months:
            local = _months_later(local, months)
        local = local + seconds
        if form == Form.DATE:
            local = _days(local) * ATTOS_PER_DAY
    set_computed(to, Kind.POINT)
    to.exact = local - offset
    to.zone = zone
    to.form = form
    return 0


cdef int128 _months_later(int128 local, int64_t months) noexcept nogil:
    cdef int64_t days = _days(local), year
    cdef int128 clock = local - days * ATTOS_PER_DAY
    cdef int month, day, longest
    civil(days, &year, &month, &day)
    months += month - 1
    year += months // 12
    month = <int>(months % 12)
    if month < 0:
        month += 12
        year -= 1
    month += 1
    longest = days_in_month(year, month)
    return days_before(year, month, day if day < longest else longest) * ATTOS_PER_DAY + clock


cdef int _shift_in_python(
    Operand* to, const Operand* moved, const Operand* by, int sign
) except -2 with gil:
    operation = _values.add if sign > 0 else _values.subtract
    return load_value(to, operation(value_of(moved), value_of(by)), NULL)
