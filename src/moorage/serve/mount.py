"""Where this server is mounted, as its clients see it: the path before all of its addresses.

A proxy may remove the prefix (`location /placement/` with a URI in nginx's `proxy_pass`) or keep it
(HAProxy); and clients beside the proxy have none. All of them are served, and every address in an
answer has the prefix.
"""

from collections.abc import Collection

from moorage.faces.web import Scope

_MOUNTED = "moorage.mounted"
"""Set in the scope of a request whose path is below the prefix."""


class Mount:
    """The prefix of all addresses.

    Args:
        prefix: the setting `path_prefix`, without a last slash; empty: none.
        own: first segments of this server's paths. A prefix that begins with one would make a path
            with it look like a path without.
    """

    def __init__(self, prefix: str = "", own: Collection[str] = ()) -> None:
        self.prefix = prefix
        self._own = frozenset(own)

    def is_own(self, prefix: str) -> bool:
        """Return whether a prefix begins as this server's own paths."""
        return prefix[1:].partition("/")[0] in self._own

    def place(self, scope: Scope) -> None:
        """Set `root_path` to the prefix, and `path` to the path below it.

        What a trusted proxy says is in `root_path` already, and goes before the setting. May be
        repeated.
        """
        if _MOUNTED in scope:
            return
        said: str = scope.get("root_path", "")
        scope[_MOUNTED] = True
        path: str = scope["path"]
        if self.is_own(said):
            said = ""
        kept = _is_below(path, self.prefix)
        if said and kept and self.prefix and not said.endswith(self.prefix):
            said += self.prefix  # the proxy has removed a part before the one that is set
        root = said or self.prefix
        if _is_below(path, root):
            path = path.removeprefix(root)
        elif kept:
            path = path.removeprefix(self.prefix)
        scope["root_path"], scope["path"] = root, path


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
