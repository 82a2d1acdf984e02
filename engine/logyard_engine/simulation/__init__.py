"""A cluster in virtual time: the same decide, tick and log, with nodes that only pretend to run."""
