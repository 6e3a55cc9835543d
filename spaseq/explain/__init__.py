"""Descriptions of compiled programs and of the progress of runs: text, data and pictures."""
