"""Text in, domain values out: the workflow language."""
