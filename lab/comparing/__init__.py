"""
Whether one run is better than another of the same cases.
"""
