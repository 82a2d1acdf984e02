"""Recorded workloads of real clusters, read from the formats in which they are published."""
