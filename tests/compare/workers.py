"""Several tasks at a time, each in a process of its own that ends with the run."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

from tests.compare.runs import Task, Totals, play


def compared(tasks: list[Task]) -> Totals:
    """Carry tasks out. What ends this early, ends them."""
    totals = Totals()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(tasks), spawn, end_with_parent) as pool:
        try:
            for one in pool.map(play, tasks):
                totals.add(one)
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
    return totals


def end_with_parent() -> None:
    """In a worker: end when the run does. What the worker has started ends with it, in turn."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
