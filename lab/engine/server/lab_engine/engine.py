"""The life of the double: bind, load, serve, ignore SIGTERM, fail as told."""

import os
import signal
import sys
import threading
import time
import traceback

from lab_engine import memory
from lab_engine.completions import Completions
from lab_engine.http import Listener


class LoadError(RuntimeError):
    """The engine cannot load; the message is what the recorded engine prints."""


class Engine:
    """What vLLM and R9V share. Subclasses say how they speak: names, errors, models, metrics, log lines."""

    # Default of LAB_ENGINE_WHILE_LOADING, the field of the thinking, and the token count of the whole context.
    while_loading = "refuse"
    reasoning_field = "reasoning"
    shards = 1

    def __init__(self, settings, host, port, names, max_length, parallel, api_keys):
        self.settings = settings
        self.host, self.port = host, port
        faults = settings.faults
        self.names = [f"wrong-{name}" for name in names] if "wrong-name" in faults else list(names)
        if "first-name-only" in faults:
            self.names = self.names[:1]
        self.max_length = max_length // 2 if "wrong-max-length" in faults else max_length
        self.api_keys = [key for key in api_keys if key]
        self.ready = False
        self.started = int(time.time())
        self.completions = Completions(self, parallel)
        self.pinned = None
        self.routes = {}

    # What a subclass says in its own way.

    def log(self, text, place="engine.py:1", level="INFO"):
        raise NotImplementedError

    def log_access(self, client, request_line, status):
        raise NotImplementedError

    def answer_loading(self, exchange):
        raise NotImplementedError

    def answer_unknown_path(self, exchange):
        raise NotImplementedError

    def answer_unauthorized(self, exchange):
        raise NotImplementedError

    def needs_key(self, path):
        raise NotImplementedError

    def check_load(self):
        """Raises LoadError for what the recorded engine refuses before it reads weights."""

    # The life.

    def run(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            listener = Listener(self.host, self.port, self)
            if self.settings.while_loading == "503":
                self._serve(listener)
            self._load()
        except Exception as error:
            self._die(error)
        if "never-ready" in self.settings.faults:
            self._sleep_for_ever()
        self.ready = True
        if self.settings.while_loading == "refuse":
            self._serve(listener)
        self.log_ready()
        self._arm("crash-after", 1)
        self._arm("exit-137-after", 137)
        self._sleep_for_ever()

    def _serve(self, listener):
        listener.open()
        threading.Thread(target=listener.serve_forever, daemon=True).start()

    def _load(self):
        soft, hard = memory.locked_memory_limits()
        self.log(f"Max locked memory: soft {soft}, hard {hard}", "memory.py:31")
        self.check_load()
        if self.settings.pin_mib:
            try:
                self.pinned = memory.pin(self.settings.pin_mib)
            except OSError as error:
                raise LoadError(
                    f"hipHostRegister of {self.settings.pin_mib} MiB failed: cannot allocate memory "
                    f"({error.strerror}; max locked memory is {soft})"
                ) from error
            self.log(f"Pinned {self.settings.pin_mib} MiB of host memory", "memory.py:52")
        steps = min(self.shards, 10)
        for step in range(steps):
            if step == steps // 2:
                self._fail_half_way()
            time.sleep(self.settings.load_seconds / steps)
            done = (step + 1) * self.shards // steps
            self.log(
                f"Loading safetensors checkpoint shards: {100 * done // self.shards}% Completed | {done}/{self.shards}",
                "weight_utils.py:712",
            )

    def _fail_half_way(self):
        faults = self.settings.faults
        if "exit-at-load" in faults:
            raise LoadError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
        if "expert-plan-error" in faults:
            raise LoadError("ExpertPlanError: host holds 5113 of 12096 swappable experts")
        if "kv-cache-error" in faults:
            raise LoadError(
                f"To serve at least one request with the models's max seq len ({self.max_length}), "
                "(2.07 GiB KV cache is needed, which is larger than the available KV cache memory (1.74 GiB)."
            )

    def _die(self, error):
        traceback.print_exception(type(error), error, error.__traceback__)
        self.log(str(error), "core.py:842", "ERROR")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    def _arm(self, fault, status):
        if fault not in self.settings.faults:
            return

        def crash():
            if status == 1:
                self.log("Memory access fault by GPU node-1 on address 0x7f0000000000", "core.py:901", "ERROR")
            sys.stdout.flush()
            # Not a signal: the first process of a container does not die of its own SIGKILL.
            os._exit(status)

        timer = threading.Timer(self.settings.faults[fault], crash)
        timer.daemon = True
        timer.start()

    @staticmethod
    def _sleep_for_ever():
        while True:
            signal.pause()

    # Requests.

    def answer(self, exchange):
        path = exchange.path.partition("?")[0]
        route = self.routes.get((exchange.command, path))
        try:
            body = exchange.read_json() if exchange.command == "POST" else {}
        except ValueError as error:
            self.refuse(exchange, 400, f"There was an error parsing the body: {error}")
            return
        if not self.ready:
            self.answer_loading(exchange)
        elif self.needs_key(path) and self.api_keys and not self._has_key(exchange):
            self.answer_unauthorized(exchange)
        elif route is None:
            self.answer_unknown_path(exchange)
        else:
            route(exchange, body)

    def _has_key(self, exchange):
        scheme, _, key = (exchange.headers.get("Authorization") or "").partition(" ")
        return scheme.lower() == "bearer" and key in self.api_keys
