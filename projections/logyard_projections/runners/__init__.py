"""Where rows live: the same folds over memory, SQLite and PostgreSQL."""
