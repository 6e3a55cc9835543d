"""The public match objects: bindings and provenance, without internals of the engine."""

from spaseq.results.data import solution_to_json, term_to_json, triples_text
from spaseq.results.native._match import Match
from spaseq.results.witness import Witness

__all__ = ["Match", "Witness", "solution_to_json", "term_to_json", "triples_text"]
