"""Graph patterns compiled to operators over rows of term numbers.

Compile time, in Python: `lower` translates a pattern to the operators of `spaseq.gpm.algebra`,
`order` orders the triples of a basic pattern, `existence` adds join keys to EXISTS, `bytecode` and
`numeric_filter` compile expressions, `flatten` numbers the operators for one run.

Run time, in Cython: `_summary_graph` (the triples of an event, by predicate), `_entailed_views`
(triples that it entails), `_matcher` (operators over `_rows`), `_bytecode` (expressions, over
`_operand`, `_operators`, `_functions` and `_calendar`), `_numeric_filter` (conditions over
numbers).
"""
