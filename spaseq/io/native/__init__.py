"""The compiled readers of Jelly and of rows, and the compiled writers of matches."""
