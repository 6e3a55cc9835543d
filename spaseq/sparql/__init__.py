"""What a query may call, by name."""
