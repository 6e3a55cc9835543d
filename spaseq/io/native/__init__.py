"""The compiled readers: bytes to encoded batches."""
