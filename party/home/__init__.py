"""The party's home folder: settings, keys, lock, backups."""
