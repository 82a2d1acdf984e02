"""The log: one suite for all storages, and what is particular to each."""
