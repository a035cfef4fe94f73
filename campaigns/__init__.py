"""Attacks on the library: programs of the repository, not of the package."""
