"""All that memkit knows of Cursor."""
