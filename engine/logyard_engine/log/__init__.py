"""The log of a cluster: appended to by one writer, read by anybody, never changed."""
