"""Evidence: a measurement tied to the bytes and rows it was made on; digests, statements, envelopes and their verification."""
