"""The knowledge base: named graphs beside the streams.

`open_kb` opens the graphs and returns a `Kb`, an immutable snapshot. `Knowledge` holds the current
snapshot of a run. An `Endpoint` configures the requests to a remote graph.
"""

from spaseq.kb.endpoint import Endpoint
from spaseq.kb.snapshot import Kb, Source, open_kb

__all__ = ["Endpoint", "Kb", "Source", "open_kb"]
