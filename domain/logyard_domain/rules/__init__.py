"""One file for each part of life: what its commands lead to, and what its events change."""
