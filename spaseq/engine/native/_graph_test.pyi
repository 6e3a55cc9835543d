from collections.abc import Sequence

from spaseq.gpm.native._matcher import NativeMatcher

class GraphTest:
    def __init__(self, matcher: NativeMatcher, cells: Sequence[int]) -> None: ...
