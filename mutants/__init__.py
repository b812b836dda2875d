"""Proof that the suite can fail, and that it is fair.

A bending proxy stands between the suite's client and a real broker and makes of it a broker with one bug (a mutant) or
with one liberty that the protocol allows (a legal variation). Every mutant must be caught by a scenario, every
scenario must catch a mutant, and no legal variation may be called a deviation.
"""
