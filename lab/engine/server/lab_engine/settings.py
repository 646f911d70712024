"""What the lab tells the double through its environment."""

import os
import sys

# Faults without a value, and faults that need one after a colon (seconds).
PLAIN_FAULTS = frozenset(
    (
        "exit-at-load",
        "expert-plan-error",
        "kv-cache-error",
        "never-ready",
        "wrong-name",
        "first-name-only",
        "wrong-max-length",
        "empty-completions",
        "hang-after-headers",
        "hang-on-second",
        "garbage",
        "leak-reasoning",
        "no-tools",
    )
)
TIMED_FAULTS = frozenset(("slow-start", "crash-after", "exit-137-after"))


class SettingError(ValueError):
    """A LAB_ENGINE_* variable that the double cannot obey: it must not run as if it had not been told."""


def _number(environment, name, default):
    text = environment.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SettingError(f"{name}={text!r}: expected a number >= 0")
    return value


def _faults(text):
    faults = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, seconds = item.partition(":")
        if name in PLAIN_FAULTS and not colon:
            faults[name] = 0.0
        elif name in TIMED_FAULTS and seconds:
            faults[name] = _number({name: seconds}, name, 0.0)
        else:
            known = sorted(PLAIN_FAULTS) + [f"{fault}:SECONDS" for fault in sorted(TIMED_FAULTS)]
            raise SettingError(f"LAB_ENGINE_FAULT={item!r} is not one of: {', '.join(known)}")
    return faults


class Settings:
    """load_seconds, token_seconds: time to become ready, time per token. pin_mib: memory to lock while loading."""

    def __init__(self, environment, while_loading):
        self.load_seconds = _number(environment, "LAB_ENGINE_LOAD_SECONDS", 2.0)
        self.token_seconds = _number(environment, "LAB_ENGINE_TOKEN_SECONDS", 0.0)
        self.pin_mib = int(_number(environment, "LAB_ENGINE_PIN_MIB", 0))
        self.while_loading = environment.get("LAB_ENGINE_WHILE_LOADING") or while_loading
        if self.while_loading not in ("refuse", "503"):
            raise SettingError(f"LAB_ENGINE_WHILE_LOADING={self.while_loading!r}: expected refuse or 503")
        self.faults = _faults(environment.get("LAB_ENGINE_FAULT", ""))
        self.load_seconds += self.faults.get("slow-start", 0.0)


def from_environment(while_loading):
    """The settings; ends the process with status 2 when a variable makes no sense."""
    try:
        return Settings(os.environ, while_loading)
    except SettingError as error:
        print(f"lab engine: {error}", file=sys.stderr)
        sys.exit(2)
