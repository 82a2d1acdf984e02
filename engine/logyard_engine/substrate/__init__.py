"""The agent on a node, which really runs allocations; `node` has its two public entries.

This file imports nothing: the keeper lives in this package and must stay small.
"""
