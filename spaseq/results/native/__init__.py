"""Compiled code: matches, and the text of their terms."""
