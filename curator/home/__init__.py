"""The curator's home folder: keys, certificates, backups."""
