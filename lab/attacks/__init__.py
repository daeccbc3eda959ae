"""
Attacks on the judge: turns whose words are meant to sway it, and the plain turns that they are laid on.
"""
