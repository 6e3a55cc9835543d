import pyarrow as pa

class Strings:
    count: int
    def buffers(self) -> tuple[bytes, bytes]: ...
    def array(self) -> pa.StringArray: ...

class Numbers:
    count: int
    def array(self) -> pa.Int64Array: ...
