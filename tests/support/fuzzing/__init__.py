"""Fuzzing of decoding, engine and sessions: records, a world to put them into, and the accounts of it."""
