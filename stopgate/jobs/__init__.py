"""
The jobs check: whether a shell command starts a process that the client does not track, or stops processes by a pattern.
"""
