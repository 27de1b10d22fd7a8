"""Backup, restore, retention, uninstall, and merging the memories of projects."""
