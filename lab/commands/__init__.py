"""
The commands of `turngate lab`: what each is asked with, and what it prints.
"""
