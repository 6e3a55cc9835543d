"""The compiled automaton: rows of graph patterns to complete matches."""
