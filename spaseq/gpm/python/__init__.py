"""Graph patterns and expressions in Python, for those that have no native form.

A pattern is native as a whole or not at all, so these modules implement all of SPARQL's algebra.
A pattern runs here if it has one of the constructs for which `native.lower` or `native.bytecode`
raises `NotNative`:

- a property path with `*`, `+`, `?` or `!`, or of more than 64 alternatives: it has no fixed number
  of joins (`property_path`);
- a sub-query, which groups, orders and projects (`subselect`, `aggregates`);
- BIND or MINUS inside EXISTS, GRAPH with a variable name or with more than triples inside EXISTS,
  SERVICE with more than triples inside EXISTS: substitution of the outer row differs from a join;
- EXISTS inside GRAPH, or a volatile function inside GRAPH;
- a call of `BNODE`, `NOW`, `RAND`, `STRUUID` or `UUID`, whose results differ from call to call;
- `REPLACE`, a `REGEX` whose pattern is computed or not of the syntax that `regular` compiles, and
  casts to `xsd:gDay` … `xsd:gYearMonth`, which pyoxigraph computes.

Local filters are native up to the first that has such a call, or an EXISTS with such a construct;
this filter and the later ones run here, on the rows that pass the earlier ones.

Native patterns and expressions call into this package too: for functions without a native form and
for values beyond native numbers (`functions`), for the rows of `GRAPH` parts, which are computed
once per KB (`algebra`), and for conditions and projections over whole matches (`entry`).

Invariant: both evaluators give the same rows and values; the tests run both on the same drawn
patterns. Cost: a Python object per row and term; see `evaluator`.
"""
