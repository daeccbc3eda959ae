"""
Labels by people: given, compared and settled.
"""
