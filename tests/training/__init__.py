"""The training pipeline, on data made here. What needs torch is skipped where torch is not installed."""
