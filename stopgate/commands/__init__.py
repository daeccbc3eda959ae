"""Commands for people, one file each."""
