"""Background knowledge: named graphs beside the streams.

`open_kb` reads them, a `Kb` is the result, and the only thing others need from here.
"""

from spaseq.kb.snapshot import Kb, Source, open_kb

__all__ = ["Kb", "Source", "open_kb"]
