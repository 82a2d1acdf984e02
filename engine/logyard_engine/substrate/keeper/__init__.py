"""The keeper: one small process per node, the parent of all job processes.

It outlives the agent (and the server that the agent may live in), so that neither a restart nor
a crash of those loses or doubles a running job. Its modules import a handful of builtin modules
and nothing else of Logyard: it must start in milliseconds and stay small.
"""
