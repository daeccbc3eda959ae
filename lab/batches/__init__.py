"""
The questions of a run by the Message Batches API: half the price, within a day.
"""
