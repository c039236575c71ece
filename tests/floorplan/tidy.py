"""The house rules that no linter checks, as functions of one source file each.

Every rule takes a `Source` and yields complaints; the tests run the rules over the real tree and
over planted violations.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 25


@dataclass(frozen=True)
class Source:
    """One Python file: its path relative to the root of the project, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return ast.parse(self.text)

    def complaint(self, line: int, text: str) -> str:
        """Format a complaint about a line so that editors can open it."""
        return f"{self.path}:{line}: {text}"


def sources(*folders: str) -> list[Source]:
    """Read every Python file below these folders of the project."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [Source(str(path.relative_to(ROOT)), path.read_text()) for path in paths]


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function of a file, nested ones included, with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # an expression has no functions but lambdas
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def oversize(source: Source) -> dict[str, int]:
    """Return what is too long, the file itself or functions, with the number of lines."""
    found = {}
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        found[source.path] = lines
    for name, node in functions(source.tree):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES_MAX:
            found[f"{source.path}::{name}"] = length
    return found


def asynchronous(source: Source) -> Iterator[str]:
    """Report every `async def`: below the faces few files may have one."""
    if "async" not in source.text:
        return  # parsing takes longer
    for name, node in functions(source.tree):
        if isinstance(node, ast.AsyncFunctionDef):
            yield source.complaint(node.lineno, f"async def {name} outside the async files")


TRANSACTION_WORD = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|END TRANSACTION)\b")


def transactions(source: Source) -> Iterator[str]:
    """Report every begin, commit and rollback: only the transactor and the engines may."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="commit" | "transaction" | "rollback" as name)):
                yield source.complaint(node.lineno, f"calls .{name}()")
            case ast.Constant(value=str(text)) if TRANSACTION_WORD.match(text):
                yield source.complaint(node.lineno, f"runs {text.split()[0]}")


def statements_named(source: Source) -> Iterator[str]:
    """Yield the names of the SQL blocks that a file of the store uses."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _last_word(node.func) in ("Query", "Write", "Stream"):
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    yield name
                case _:
                    yield source.complaint(node.lineno, "computes the name of its block")


BLOCK = re.compile(r"^-- name: (\w+) --$", re.MULTILINE)


def statements_written(source: Source) -> list[str]:
    """Return the names of the blocks of an SQL file."""
    return BLOCK.findall(source.text)


CAPACITY_WORDS = ("reserved", "allocation_ratio", "allocation_ratios")
SQL_ARITHMETIC = re.compile(
    r"[-+*/]\s*(\w+\.)?(reserved|allocation_ratio)\b|\b(reserved|allocation_ratio)\s*[-+*/]"
)


def capacity_computed(source: Source) -> Iterator[str]:
    """Report arithmetic with the terms of the capacity rule."""
    for node in ast.walk(source.tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target, node.value]
        for operand in operands:
            if _last_word(operand) in CAPACITY_WORDS:
                yield source.complaint(operand.lineno, f"computes with {_last_word(operand)}")


def capacity_computed_in_sql(source: Source) -> Iterator[str]:
    """Report SQL that computes capacity; it may only compare stored figures."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if SQL_ARITHMETIC.search(line.split("--")[0]):
            yield source.complaint(number, "computes capacity in SQL")


BOUND = re.compile(r"_?[A-Z][A-Z0-9_]*_(MAX|MIN)")


def bounds_shown(source: Source) -> Iterator[str]:
    """Report bounds that a message shows to callers and that are not in `core/limits.py`.

    A bound that is part of the rules is shown when it is exceeded. One that no message shows
    only tunes an algorithm, and stays next to it.
    """
    tree = source.tree
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and BOUND.fullmatch(target.id)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and _last_word(node.value) in own:
            word = _last_word(node.value)
            yield source.complaint(node.lineno, f"shows {word}, which is not in core/limits.py")


def _last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value
        return _last_word(node.value)
    return ""


NOQA = re.compile(r"#\s*noqa\b(?P<rest>.*)", re.IGNORECASE)
NOQA_WITH_REASON = re.compile(r":\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*\W+\w+.*\w")
IGNORE = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)")
IGNORE_WITH_REASON = re.compile(r"\[[a-z0-9, -]+\]\s*#\s*\w+.*\w")


def unexplained_exceptions(source: Source) -> Iterator[str]:
    """Report every exception to a check without a code and a reason on the same line."""
    if not NOQA.search(source.text) and not IGNORE.search(source.text):
        return  # finding the comments takes longer
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        for exception, complete in ((NOQA, NOQA_WITH_REASON), (IGNORE, IGNORE_WITH_REASON)):
            found = exception.match(token.string)
            if found and not complete.match(found["rest"]):
                yield source.complaint(token.start[0], "an exception without a code or a reason")


def sleeps(source: Source) -> Iterator[str]:
    """Report tests that sleep instead of waiting for an event.

    `sleep(0)` is allowed: it only yields to other tasks.
    """
    if "sleep" not in source.text:
        return  # parsing takes longer
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or _last_word(node.func) != "sleep":
            continue
        if [getattr(argument, "value", None) for argument in node.args] != [0]:
            yield source.complaint(node.lineno, "sleeps")


NAMED_MODULE = re.compile(r"`([a-z0-9_]+(?:\.py|/))`")


UNNAMED = {"__init__.py", "__main__.py", "__pycache__/"}
"""Names that a door sign may omit."""


def door_sign(source: Source, neighbours: set[str]) -> Iterator[str]:
    """Report what a package's docstring omits, and what it names that does not exist.

    `neighbours` are the files (`x.py`) and folders (`x/`) next to the package's `__init__.py`.
    """
    sign = ast.get_docstring(source.tree) or ""
    named = set(NAMED_MODULE.findall(sign))
    for name in sorted(neighbours - named - UNNAMED):
        yield source.complaint(1, f"the door sign does not name {name}")
    for name in sorted(named - neighbours):
        yield source.complaint(1, f"the door sign names {name}, which is not here")


def crowded(folders: dict[str, int]) -> Iterator[str]:
    """Report folders with too many files; `folders` has the number of files of each."""
    for folder, files in sorted(folders.items()):
        if files > FOLDER_FILES_MAX:
            yield f"{folder}: {files} files, at most {FOLDER_FILES_MAX}"
