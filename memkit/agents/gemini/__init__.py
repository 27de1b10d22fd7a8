"""All that memkit knows of Gemini CLI."""
