"""The parser class that the original's argument functions take."""

import argparse
import sys


def human_readable_int(text):
    """`131072`, `128k` (thousands) or `128K` (1,024)."""
    factors = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    if text and text[-1] in factors:
        return int(float(text[:-1]) * factors[text[-1]])
    return int(text)


class FlexibleArgumentParser(argparse.ArgumentParser):
    """Takes `--max_model_len` for `--max-model-len`. Unlike the original it refuses abbreviations."""

    def __init__(self, *arguments, **options):
        options["allow_abbrev"] = False
        super().__init__(*arguments, **options)

    def parse_args(self, args=None, namespace=None):
        return super().parse_args([self._dashed(arg) for arg in (sys.argv[1:] if args is None else args)], namespace)

    @staticmethod
    def _dashed(arg):
        if not arg.startswith("--"):
            return arg
        flag, equals, value = arg.partition("=")
        if flag == "--help":
            return flag
        return flag.replace("_", "-") + equals + value
