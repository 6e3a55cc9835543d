"""Background knowledge: named graphs beside the streams.

`open_kb` opens them, a `Kb` is the result; `Knowledge` holds the one in force, and `Endpoint`
says how a remote one is asked.
"""

from spaseq.kb.endpoint import Endpoint
from spaseq.kb.snapshot import Kb, Source, open_kb

__all__ = ["Endpoint", "Kb", "Source", "open_kb"]
