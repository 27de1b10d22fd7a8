"""All that memkit knows of each agent: its files, settings, and tool names. One folder for each."""
