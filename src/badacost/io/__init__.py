"""Files: model files, limits on what is read, atomic writes, locks."""
