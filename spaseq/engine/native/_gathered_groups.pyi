from spaseq.engine.native._gathered import Gathering
from spaseq.engine.native._group_matches import SolutionMaker
from spaseq.engine.native._matches import MatchMaker

class GroupGathering(Gathering):
    def solve_with(self, solutions: SolutionMaker) -> None: ...

class GatheredGroupMaker(MatchMaker): ...
