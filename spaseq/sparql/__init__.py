"""The functions that a query may call."""
