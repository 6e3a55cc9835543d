"""Runs that never end: sources that are followed, sinks that commit, state that survives.

One thread per source reads bytes into a bounded queue (`feeder`). The coordinator decodes them,
merges the streams by time, runs the queries, writes the matches and makes checkpoints
(`coordinator`), all in one thread. `protocols` defines sources and sinks, and `registry` lists
those of each URL scheme.
"""
