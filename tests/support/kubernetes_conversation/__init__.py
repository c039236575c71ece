"""One conversation with an API server of Kubernetes, real or not, and what was answered.

`steps.py` has the kinds of steps; `hosts.py`, `patching.py`, `watching.py`, `serving.py`,
`admitting.py` and `aging.py` have the steps themselves. `playing.py` plays them, `double.py` does
so with the double. `normal.py` removes what differs from run to run. `recorded.json` has the
answers of a real server, kube-apiserver 1.36.3. `comparing.py` compares answers with it;
`differences.py` says in which ways the double differs, and why.

To add a step, add a line, and record the answers again:
`.venv/bin/python -m tests.kubernetes.conversation`.
"""
