"""What it costs: usage, prices, the ledger of every call and every decision, and the reports made from it."""
