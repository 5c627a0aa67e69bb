"""One response: a state machine, what it writes, and what is stored of it."""
