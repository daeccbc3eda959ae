"""The judge service: a resident process that answers hooks and other machines over HTTP."""
