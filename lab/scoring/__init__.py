"""
What the judge of a run is worth.
"""
