"""The model back ends: who answers a request."""
