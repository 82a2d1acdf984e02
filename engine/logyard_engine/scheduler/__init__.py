"""Deciding what runs where. Pure: no clock, no dice, no I/O."""
