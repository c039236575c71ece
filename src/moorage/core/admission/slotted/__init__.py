"""Named slots: which labels requests ask for, which slots a scan has left, changes by operators.

May import: the rest of `core/admission`, as that may import this.
"""
