"""Evaluates CEL: reads expressions and requests as JSON, prints what each expression gives."""

import json
import sys
from typing import Any

import celpy


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, cls=celpy.CELJSONEncoder))


def main() -> None:
    """Read from standard input, print a list of lists."""
    asked = json.load(sys.stdin)
    environment = celpy.Environment()
    programs = [environment.program(environment.compile(text)) for text in asked["expressions"]]
    answers = []
    for request in asked["requests"]:
        names = {"object": request["object"], "oldObject": request["oldObject"]}
        values = {
            **{name: celpy.json_to_cel(value) for name, value in names.items()},
            "request": celpy.json_to_cel(request),
        }
        answers.append([_plain(program.evaluate(values)) for program in programs])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
