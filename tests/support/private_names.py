"""Private names of other packages that classes of ours override."""


def overridden(ours: type, theirs: type) -> set[str]:
    """Return the private names that a class, or a base of it here, defines like `theirs`."""
    assert issubclass(ours, theirs)
    here = [kind for kind in ours.mro() if kind not in theirs.mro()]
    names = {name for kind in here for name in vars(kind) if not name.startswith("__")}
    return {name for name in names if name.startswith("_") and hasattr(theirs, name)}
