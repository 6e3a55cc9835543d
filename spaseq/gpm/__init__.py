"""Graph patterns: one event, and the knowledge base, → rows of bindings; and expressions.

    ast (parser) → `GpmProgram` (program) → `Pattern` (pattern) → rows (matchers)

`compile_pattern` decides, per pattern and per local filter, what is native (`native/`) and what
runs on operators in Python (`python/`). `Matchers` links the patterns of a run to one dictionary
and one summary graph, and matches events.
"""
