"""Opening a logged model and asking it about rows; one file per flavour."""
