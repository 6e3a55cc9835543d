"""Compiled code: graphs and rows of Arrow."""
