"""Fitting of what the package ships as parameters. Not in the wheel."""
