"""Project identity outside hooks: git commands and changes to the registry."""
