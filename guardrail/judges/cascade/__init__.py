"""The cascade: a judge on this machine first, a second one only for the claims it can't settle."""
