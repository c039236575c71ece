"""The orchestrators, each with its own server, used by its API as its page does.

`orchestrator.py` says what each can do, and starts processes in their environments; `api.py` sends
requests. `prefect.py`, `dagster.py` and `airflow.py` are the three; `every.py` starts one by name.
"""
