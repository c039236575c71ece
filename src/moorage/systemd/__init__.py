"""What a service and systemd tell each other, as in `sd_notify(3)` and `sd_listen_fds(3)`.

Start with `notifier.py`: it sends notifications. `patience.py` asks for more time while a long
start or stop makes progress, `heartbeat.py` notifies from an event loop while a service runs, and
`passed_sockets.py` takes the sockets that systemd holds. Without the variables of systemd nothing
happens. All layers may import it; it imports only the standard library and runs on Python 3.9.
"""
