"""Matching graph patterns: one event, and the KB, to rows of bindings; and expressions.

text → ast (parser) → `GpmProgram` (program) → algebra nodes (compile) → rows (match).
Expressions go the way ast → closures (operators) → terms.
"""
