"""The command line of R9V, llama.cpp's way: every option takes the next word as its value."""

import sys

# Names of an option -> (key, kind, default). A kind is `flag` or a function of the value's text.


def _switch(text):
    if text not in ("on", "off", "auto"):
        raise ValueError(f"unknown value: '{text}'")
    return text


OPTIONS = (
    (("-m", "--model"), "model", str, ""),
    (("-mm", "--mmproj"), "mmproj", str, ""),
    (("-a", "--alias"), "alias", str, ""),
    (("--host",), "host", str, "127.0.0.1"),
    (("--port",), "port", int, 8080),
    (("--api-key",), "api_key", str, ""),
    (("-c", "--ctx-size"), "ctx_size", int, 4096),
    (("-n", "--predict", "--n-predict"), "predict", int, -1),
    (("-np", "--parallel"), "parallel", int, 1),
    (("-b", "--batch-size"), "batch_size", int, 2048),
    (("-ub", "--ubatch-size"), "ubatch_size", int, 512),
    (("-t", "--threads"), "threads", int, -1),
    (("-tb", "--threads-batch"), "threads_batch", int, -1),
    (("-fa", "--flash-attn"), "flash_attn", _switch, "auto"),
    (("-ctk", "--cache-type-k"), "cache_type_k", str, "f16"),
    (("-ctv", "--cache-type-v"), "cache_type_v", str, "f16"),
    (("-ngl", "--gpu-layers", "--n-gpu-layers"), "gpu_layers", str, "auto"),
    (("-ncmoe", "--n-cpu-moe"), "n_cpu_moe", int, 0),
    (("-ot", "--override-tensor"), "override_tensor", str, ""),
    (("-sm", "--split-mode"), "split_mode", str, "layer"),
    (("-ts", "--tensor-split"), "tensor_split", str, ""),
    (("-mg", "--main-gpu"), "main_gpu", int, 0),
    (("-dev", "--device"), "device", str, ""),
    (("-s", "--seed"), "seed", int, -1),
    (("--temp", "--temperature"), "temperature", float, 0.8),
    (("--top-k",), "top_k", int, 40),
    (("--top-p",), "top_p", float, 0.95),
    (("--min-p",), "min_p", float, 0.05),
    (("--chat-template",), "chat_template", str, ""),
    (("--chat-template-file",), "chat_template_file", str, ""),
    (("--chat-template-kwargs",), "chat_template_kwargs", str, ""),
    (("--reasoning-format",), "reasoning_format", str, "auto"),
    (("--reasoning-budget",), "reasoning_budget", int, -1),
    (("--slot-save-path",), "slot_save_path", str, ""),
    (("--cache-ram",), "cache_ram", int, 8192),
    (("--log-file",), "log_file", str, ""),
    (("-to", "--timeout"), "timeout", int, 600),
    (("--threads-http",), "threads_http", int, -1),
    (("-cmoe", "--cpu-moe"), "cpu_moe", "flag", False),
    (("--jinja",), "jinja", "flag", True),
    (("--no-jinja",), "no_jinja", "flag", False),
    (("--metrics",), "metrics", "flag", False),
    (("--slots",), "slots", "flag", True),
    (("--no-slots",), "no_slots", "flag", False),
    (("--props",), "props", "flag", False),
    (("--mlock",), "mlock", "flag", False),
    (("--no-mmap",), "no_mmap", "flag", False),
    (("--no-warmup",), "no_warmup", "flag", False),
    (("-cb", "--cont-batching"), "cont_batching", "flag", True),
    (("--no-webui",), "no_webui", "flag", False),
    (("-v", "--verbose"), "verbose", "flag", False),
    # R9V's own. The record names the state directories, not the option: this name is the double's.
    (("--state-dir",), "state_dir", str, ""),
)


class ArgumentError(ValueError):
    """What R9V prints before it exits with status 1."""


def parse(words):
    """The values by key; ArgumentError for an unknown option, a missing or an impossible value."""
    by_name = {name: option for option in OPTIONS for name in option[0]}
    values = {key: default for _, key, _, default in OPTIONS}
    rest = iter(words)
    for word in rest:
        # The original takes --ctx_size for --ctx-size.
        name = word.replace("_", "-") if word.startswith("--") else word
        if name not in by_name:
            raise ArgumentError(f"error: invalid argument: {word}")
        _, key, kind, _ = by_name[name]
        if kind == "flag":
            values[key] = True
            continue
        value = next(rest, None)
        if value is None:
            raise ArgumentError(f'error while handling argument "{word}": expected value for argument')
        try:
            values[key] = kind(value)
        except ValueError as error:
            raise ArgumentError(f'error while handling argument "{word}": {error}') from error
    if not values["model"]:
        raise ArgumentError("error: --model is required")
    return values


def usage():
    return "usage: r9v-server [options]\n" + "".join(
        f"  {', '.join(names)}{'' if kind == 'flag' else ' VALUE'}\n" for names, _, kind, _ in OPTIONS
    )


def parse_or_exit(words):
    if set(words) & {"-h", "--help", "--usage"}:
        print(usage(), end="")
        sys.exit(0)
    try:
        return parse(words)
    except ArgumentError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
