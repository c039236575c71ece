"""Files of configuration as oslo.config itself reads them, and rules as oslo.policy has them.

ORIGINAL names the folder of the original's programs, with its Python.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

from moorage.config import ConfigError
from moorage.config.oslo_files import OsloFiles
from moorage.config.placement_policy import RULES
from tests.config.files import KOLLA, OPENSTACK_ANSIBLE
from tests.config.test_oslo_files import TEXT

PYTHON = Path(os.environ["ORIGINAL"]) / "python"

CASES = 2_000
SEED = 1

READ = """
import json, re, sys
from oslo_config import cfg

def values(path):
    conf = cfg.ConfigOpts()
    groups = {}
    parser = cfg.ConfigParser(path, groups)
    try:
        parser.parse()
        found = {}
        keys = [(g, k) for g, keys in groups.items() for k in keys]
        for group, key in keys:
            where = None if group.upper() == 'DEFAULT' else group.lower()
            try:
                conf.register_opt(cfg.StrOpt(key, default=None), group=where)
            except cfg.DuplicateOptError:
                pass
        conf(args=[], default_config_files=[path], default_config_dirs=[])
        for group, key in keys:
            where = None if group.upper() == 'DEFAULT' else group.lower()
            name = where or 'DEFAULT'
            found[f'{name}.{key}'] = conf._get(key, group=conf._get_group(where) if where else None)
        return found
    except Exception as error:
        return type(error).__name__

print(json.dumps({path: values(path) for path in json.load(sys.stdin)}))
"""

RULES_OF_THE_ORIGINAL = """
import json
from placement import policies
print(json.dumps({rule.name: str(rule.check_str) for rule in policies.list_rules()}))
"""

LINES = (
    *("[a]", "[A]", "[DEFAULT]", "[b]", "[a", "[]", "", "# x = 1", "; x = 1", "#", "word", "= 1"),
    *("x = 1", "x=2", "x : 3", "x: a = b", "x = a : b", "y = 'q'", 'y = "q', 'y = "q"', "y ="),
    *(
        "  more",
        "\tmore",
        "  # more",
        "z = $x",
        "z = ${x}",
        "z = $$x",
        "z = \\$x",
        "z = $",
        "z = $a.x",
    ),
    *("z = ${a.x}-$y", "z = ${DEFAULT.x}", "y = a,b , ,c", "x = é ⚓", "  ", "y = '", "y = ''"),
)


def ours(path: Path) -> dict[str, str | None] | None:
    """Return all values, or None if the file is not accepted."""
    try:
        files = OsloFiles([str(path)])
        return {f"{group}.{key}": files.text(group, key) for group, key in files.assigned()}
    except ConfigError:
        return None


def original(program: str, given: Any) -> Any:
    """Run a program with the original's Python; return its JSON."""
    done = subprocess.run(
        [str(PYTHON), "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": "/nonexistent"},
    )
    return json.loads(done.stdout)


def test_the_same_values(tmp_path: Path) -> None:
    """Those of deployment projects, and random ones: the same values, or both refuse the file."""
    chosen = random.Random(SEED)
    texts = [KOLLA, OPENSTACK_ANSIBLE, TEXT]
    texts += [
        "[a]\n" + "\n".join(chosen.choice(LINES) for _ in range(chosen.randrange(1, 9)))
        for _ in range(CASES)
    ]
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.conf")
        paths[-1].write_text(text)
    theirs = original(READ, [str(path) for path in paths])
    wrong, refused = [], 0
    for path in paths:
        expected = theirs[str(path)]
        refused += isinstance(expected, str)
        if ours(path) != (None if isinstance(expected, str) else expected):
            wrong.append((path.read_text(), expected, ours(path)))
    assert wrong[:3] == []
    assert CASES // 10 < refused < CASES * 9 // 10


def test_the_same_rules() -> None:
    """Every rule of the original, with its default."""
    assert original(RULES_OF_THE_ORIGINAL, None) == RULES
