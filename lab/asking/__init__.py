"""
Asking a judge about every case: on the production path, or by somebody else.
"""
