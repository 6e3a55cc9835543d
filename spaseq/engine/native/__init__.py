"""The compiled part of a run: from encoded batches to matches, without the interpreter."""
