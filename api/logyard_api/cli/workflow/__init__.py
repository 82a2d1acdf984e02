"""`logyard workflow`: one module a verb or a few that ask alike."""
