"""Write access to the registry of projects."""
