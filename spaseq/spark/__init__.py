"""Patterns over RDF streams on Spark."""
