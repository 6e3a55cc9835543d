"""The compiled readers of N-Quads, N-Triples, TriG and Turtle, for streams and knowledge bases."""
