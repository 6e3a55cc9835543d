from spaseq.rdf._batch import EventBatch

def decoded(
    batch: EventBatch, term: int
) -> tuple[int, int | None, float | None, str | None, int | None, int | None]: ...
