"""Many responses, one judge."""
