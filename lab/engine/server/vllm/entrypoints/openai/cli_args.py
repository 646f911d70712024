"""The command line of the recorded image: the original's flags that the shapes may use, and the fork's own two."""

import argparse
import json
from itertools import permutations

from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
from vllm.utils.argparse_utils import human_readable_int

TOOL_PARSERS = ToolParserManager.list_registered()
REASONING_PARSERS = ReasoningParserManager.list_registered()

# flag -> options of add_argument; `True` is the original's boolean pair --x / --no-x.
FRONTEND = {
    "--host": {},
    "--port": {"type": int, "default": 8000},
    "--uvicorn-log-level": {"choices": ["critical", "error", "warning", "info", "debug", "trace"], "default": "info"},
    "--disable-uvicorn-access-log": True,
    "--api-key": {"nargs": "*"},
    "--root-path": {},
    "--chat-template": {},
    "--chat-template-content-format": {"choices": ["auto", "openai", "string"], "default": "auto"},
    "--default-chat-template-kwargs": {"type": "json"},
    "--response-role": {"default": "assistant"},
    "--enable-auto-tool-choice": True,
    "--tool-call-parser": {"metavar": "{" + ",".join(TOOL_PARSERS) + "}"},
    "--tool-parser-plugin": {},
    "--exclude-tools-when-tool-choice-none": True,
    "--enable-prompt-tokens-details": True,
    "--enable-server-load-tracking": True,
    "--enable-force-include-usage": True,
    "--enable-request-id-headers": True,
    "--max-log-len": {"type": int},
}
ENGINE = {
    "--model": {"default": "Qwen/Qwen3-0.6B"},
    "--served-model-name": {"nargs": "+"},
    "--tokenizer": {},
    "--tokenizer-mode": {"default": "auto"},
    "--trust-remote-code": True,
    "--dtype": {"choices": ["auto", "half", "float16", "bfloat16", "float", "float32"], "default": "auto"},
    "--seed": {"type": int, "default": 0},
    "--revision": {},
    "--max-model-len": {"type": "size", "default": 131072},
    "--quantization": {"short": "-q"},
    "--hf-overrides": {"type": "json"},
    "--generation-config": {"default": "auto"},
    "--override-generation-config": {"type": "json"},
    "--enforce-eager": True,
    "--load-format": {"default": "auto"},
    "--download-dir": {},
    "--model-loader-extra-config": {"type": "json"},
    "--reasoning-parser": {"default": "", "metavar": "{" + ",".join(REASONING_PARSERS) + "}"},
    "--tensor-parallel-size": {"type": int, "default": 1, "short": "-tp"},
    "--pipeline-parallel-size": {"type": int, "default": 1, "short": "-pp"},
    "--data-parallel-size": {"type": int, "default": 1, "short": "-dp"},
    "--enable-expert-parallel": True,
    "--distributed-executor-backend": {"choices": ["external_launcher", "mp", "ray", "uni"]},
    "--disable-custom-all-reduce": True,
    "--block-size": {"type": int},
    "--gpu-memory-utilization": {"type": float, "default": 0.92},
    "--kv-cache-memory-bytes": {"type": "size"},
    "--cpu-offload-gb": {"type": float, "default": 0},
    "--kv-cache-dtype": {
        "choices": ["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla"],
        "default": "auto",
    },
    "--calculate-kv-scales": True,
    "--enable-prefix-caching": True,
    "--prefix-caching-hash-algo": {"choices": ["sha256", "sha256_cbor", "xxhash", "xxhash_cbor"]},
    "--mamba-cache-dtype": {"choices": ["auto", "float16", "float32"], "default": "auto"},
    "--mamba-block-size": {"type": int},
    "--limit-mm-per-prompt": {"type": "json"},
    "--mm-processor-kwargs": {"type": "json"},
    "--mm-encoder-tp-mode": {"choices": ["data", "weights"], "default": "weights"},
    "--skip-mm-profiling": True,
    "--language-model-only": True,
    "--max-num-batched-tokens": {"type": "size"},
    "--max-num-seqs": {"type": int, "default": 256},
    "--max-num-partial-prefills": {"type": int, "default": 1},
    "--long-prefill-token-threshold": {"type": int, "default": 0},
    "--scheduling-policy": {"choices": ["fcfs", "priority"], "default": "fcfs"},
    "--enable-chunked-prefill": True,
    "--async-scheduling": True,
    "--cudagraph-capture-sizes": {"type": int, "nargs": "+"},
    "--speculative-config": {"type": "json", "short": "-sc"},
    "--kv-transfer-config": {"type": "json"},
    "--compilation-config": {"type": "json", "short": "-cc"},
    "--attention-config": {"type": "json", "short": "-ac"},
    "--attention-backend": {},
    "--profiler-config": {"type": "json"},
    "--additional-config": {"type": "json"},
    "--optimization-level": {"type": int, "short": "-O"},
    "--structured-outputs-config": {"type": "json"},
    "--otlp-traces-endpoint": {},
    "--collect-detailed-traces": {
        "nargs": "+",
        "choices": ["all", "model", "worker", *(",".join(pair) for pair in permutations(("all", "model", "worker"), 2))],
    },
    "--max-logprobs": {"type": int, "default": 20},
    "--disable-log-stats": True,
    "--shutdown-timeout": {"type": int, "default": 0},
    "--enable-log-requests": True,
    # The fork's own, as recorded.
    "--enable-expert-offload": True,
    "--expert-precise-memory": True,
}


def json_object(text):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to <function loads>: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"Value {text} is not a JSON object.")
    return value


def size(text):
    if text == "auto":
        return -1
    try:
        return human_readable_int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"invalid human_readable_int value: {text!r}") from error


def _add(group, flag, options):
    if options is True:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=False)
        return
    options = dict(options)
    names = [name for name in (flag, options.pop("short", None)) if name]
    kinds = {"json": json_object, "size": size}
    options["type"] = kinds.get(options.get("type"), options.get("type", str))
    group.add_argument(*names, **options)


def make_arg_parser(parser):
    """Adds every flag to `parser` and returns it, as the original's function of this name."""
    parser.add_argument("model_tag", nargs="?", help="The model to serve, if not given by --model")
    for title, flags in (("Frontend", FRONTEND), ("Engine", ENGINE)):
        group = parser.add_argument_group(title)
        for flag, options in flags.items():
            _add(group, flag, options)
    return parser


def validate_parsed_serve_args(args):
    """What the original checks after parsing and before loading."""
    if args.enable_auto_tool_choice and not args.tool_call_parser:
        raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")
    _check_parser("tool call parser", args.tool_call_parser, TOOL_PARSERS)
    _check_parser("reasoning parser", args.reasoning_parser, REASONING_PARSERS)


def _check_parser(kind, name, known):
    if name and name not in known:
        raise KeyError(f"invalid {kind}: {name} (chose from {{ {','.join(known)} }})")
