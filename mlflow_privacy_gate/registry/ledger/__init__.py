"""Where the ledger is kept: a table in the registry's own database, or a file of JSON lines for registries that are no database of ours."""
