"""Runs several tasks at a time, each in a separate process that ends with the run."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

from tests.compare.runs import Task, Totals, play


def compared(tasks: list[Task]) -> Totals:
    """Execute tasks. If this ends early, the workers are killed."""
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
    """In a worker: end when the run does; the worker's servers then end with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
