"""Which rows of one chunk form which tree. A tree is never split over chunks."""

import numpy as np
from numpy.typing import NDArray


class Trees:
    """The trees of one chunk. A tree is identified by the row of its root."""

    __slots__ = ("_members", "_root_at", "is_root", "parents", "root")

    def __init__(self, size: int) -> None:
        self.root: NDArray[np.intp] = np.arange(size)
        """The row of the root of each row's tree; for an empty row, the row itself."""
        self.is_root: NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
        self._members: dict[int, list[int]] = {}
        self.parents: NDArray[np.intp] | None = None
        """The cached result of `ancestors.parent_rows`; None: not computed."""
        self._root_at = self.root.data

    def join(self, row: int, root: int) -> None:
        """Put a row into the tree of `root`: the row itself, or one that joined before."""
        self.parents = None
        self.root[row] = root
        self.is_root[row] = row == root
        if row != root:
            self._members.setdefault(root, [root]).append(row)

    def join_alone(self, rows: list[int]) -> None:
        """Make each of these rows, which are in no tree, a separate tree."""
        self.is_root[rows] = True

    def leave(self, row: int) -> None:
        """Remove a row from its tree."""
        self.parents = None
        root = self.root_of(row)
        members = self._members.get(root)
        if members is not None:
            if row in members:
                members.remove(row)
            if members in ([], [root]):
                del self._members[root]
        self.root[row] = row
        self.is_root[row] = False

    def root_of(self, row: int) -> int:
        """Return the row of the root of a row's tree."""
        root: int = self._root_at[row]
        return root

    def members(self, root: int) -> list[int]:
        """Return the rows of a tree, including its root. Do not modify the list."""
        return self._members.get(root) or [root]

    @property
    def is_forest(self) -> bool:
        """Does any tree have more than its root?"""
        return bool(self._members)

    def is_single(self, row: int) -> bool:
        """Is the row a whole tree?"""
        return not self._members or (self._root_at[row] == row and row not in self._members)

    def is_lone(self, root: int) -> bool:
        """Is the root the only row of its tree?"""
        return root not in self._members

    def lone_among(self, roots: memoryview) -> int:
        """Return how many of these roots come before the first with other members."""
        if self._members:
            for count, root in enumerate(roots):
                if root in self._members:
                    return count
        return len(roots)

    def any_of(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the roots of all trees that have a marked row."""
        if not self._members:
            return mask
        found: NDArray[np.bool_] = np.zeros(len(mask), dtype=np.bool_)
        found[self.root[mask]] = True
        return found

    def grow(self, size: int) -> None:
        """Add empty rows up to `size`."""
        old = len(self.root)
        self.parents = None
        self.root = np.concatenate([self.root, np.arange(old, size)])
        self.is_root = np.concatenate([self.is_root, np.zeros(size - old, dtype=np.bool_)])
        self._root_at = self.root.data
