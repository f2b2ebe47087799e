"""Evidence: what was measured, on which bytes, with which data; digests, statements, envelopes and their verification."""
