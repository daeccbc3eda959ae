"""
Recorded sessions: what the gate would have done in them, and their turns as cases.
"""
