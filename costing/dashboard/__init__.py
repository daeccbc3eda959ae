"""The web page: what it shows, from the ledger, and how it is written. Served by the judge service."""
