"""Graph patterns and expressions in Python: what has no native form."""
