"""How the model's forward pass is compiled."""

import os

MARKER = "image"


def full_graph():
    return os.environ.get("VLLM_COMPILE_FULLGRAPH", "1") != "0"
