"""Batch evaluation: answers that are complete, from files, judged by the same engine as streams."""
