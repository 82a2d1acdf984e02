"""Keyed folds of the log into rows that answer one kind of question each."""
