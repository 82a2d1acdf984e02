"""The one writer: clock, log, loop, scheduler and substrate."""
