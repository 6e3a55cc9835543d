from collections.abc import Sequence

from spaseq.gpm._match import NativeMatcher

class GraphTest:
    def __init__(self, matcher: NativeMatcher, cells: Sequence[int]) -> None: ...
