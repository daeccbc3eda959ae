"""How our hooks get into the client's settings files, and out of them again."""
