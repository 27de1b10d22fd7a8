"""Ask a language model: providers, prices, and the ledger of calls."""
