"""Tables → events: rows of CSV, JSON lines, Parquet, Arrow and data frames by a SPARQL CONSTRUCT.

`mapping` parses and checks a mapping, `plan` binds it to the columns of a table, `tables` opens
files and frames as Arrow batches, `columns` prepares Arrow arrays for the compiled reader
(spaseq/io/native/_rows.pyx), `source` yields the events, and `suggest` writes a first mapping.
"""
