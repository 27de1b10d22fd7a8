"""What keeps memkit healthy over years, and what lets a person leave: backup, retention, removal."""
