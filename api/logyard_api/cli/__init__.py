"""The command line `logyard`: one module a verb or a noun, loaded when it is used."""
