"""The recorded engine's server: an OpenAI-compatible API in vLLM's words."""

import hashlib
import importlib
import json
import os
import threading
import time

from lab_engine import settings
from lab_engine.completions import Refusal
from lab_engine.engine import Engine, LoadError

# Modules that the operator's patches replace. Each says something that the server uses.
PATCH_TARGETS = (
    "vllm.models.glm5next.common.model",
    "vllm.models.glm5next.common.attention",
    "vllm.model_executor.kernels.r4d_lib",
    "vllm.compilation.wrapper",
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.worker.gpu_worker",
    "vllm.expert_activation_registry",
)


class VllmEngine(Engine):
    while_loading = "refuse"
    reasoning_field = "reasoning"

    def __init__(self, args):
        self.args = args
        self.model_path = args.model_tag or args.model
        self.payload = {}
        self.damaged = False
        self.separates_reasoning = bool(args.reasoning_parser)
        self.modules = {}
        super().__init__(
            settings.from_environment(self.while_loading),
            args.host or "",
            args.port,
            args.served_model_name or [self.model_path],
            131072 if args.max_model_len == -1 else args.max_model_len,
            args.max_num_seqs,
            args.api_key or [os.environ.get("VLLM_API_KEY")],
        )
        self.profiling = _profiler_settings(args.profiler_config)
        self.routes = {
            ("GET", "/health"): lambda exchange, _: exchange.send_text(200, ""),
            ("GET", "/ping"): lambda exchange, _: exchange.send_text(200, ""),
            ("GET", "/version"): lambda exchange, _: exchange.send_json(200, {"version": "0.0.0+lab"}),
            ("GET", "/v1/models"): lambda exchange, _: exchange.send_json(200, self.models()),
            ("GET", "/metrics"): lambda exchange, _: exchange.send_text(200, self.metrics()),
            ("GET", "/lab/modules"): lambda exchange, _: exchange.send_json(200, self.describe_modules()),
            ("POST", "/v1/chat/completions"): self.completions.chat,
            ("POST", "/v1/completions"): self.completions.text,
        }
        if self.profiling:
            self.routes["POST", "/start_profile"] = self.start_profile
            self.routes["POST", "/stop_profile"] = self.stop_profile

    # Loading.

    def check_load(self):
        self.modules = {name: importlib.import_module(name) for name in PATCH_TARGETS}
        args = self.args
        config_path = os.path.join(self.model_path, "config.json")
        try:
            with open(config_path, encoding="utf-8") as file:
                self.payload = json.load(file)
        except (OSError, ValueError) as error:
            raise LoadError(
                f"Invalid repository ID or local directory specified: '{self.model_path}'. "
                f"No usable 'config.json' found in it ({error})"
            ) from error
        method = (self.payload.get("quantization_config") or {}).get("quant_method")
        if args.enable_expert_offload and method == "compressed-tensors":
            raise LoadError("ExpertPlanError: no offload recipe for quantization method 'compressed-tensors'")
        glm = "glm" in str(self.payload.get("model_type", "")).lower()
        if glm and args.kv_cache_dtype.startswith("fp8"):
            raise LoadError("module 'aiter.mla' has no attribute 'rocm_aiter_mla_decode_fwd'")
        expandable = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        if glm and args.enable_expert_offload and not expandable:
            raise LoadError("HIP out of memory. Tried to allocate 662.00 MiB. GPU 0 has 240.00 MiB is free.")
        self.damaged = self._lacks_shards()
        attention, registry = self.module("attention"), self.module("expert_activation_registry")
        self.log(f"Using {attention.BACKEND} attention; {registry.ROUTED_EXPERTS} experts per token", "gpu_worker.py:88")
        if args.enable_expert_offload:
            self.log("expert plan: 2383 slots of 6.234 MiB, 12096 experts in pinned host memory", "expert_lru.py:140")
        reserve = self.module("kv_cache_utils").reserve_bytes(self.max_length, args.speculative_config)
        self.log(f"KV cache reserve: {reserve / (1 << 30):.2f} GiB for {self.max_length} tokens", "kv_cache_utils.py:905")

    def module(self, last):
        return next(module for name, module in self.modules.items() if name.endswith("." + last))

    def _lacks_shards(self):
        """The original loads quantized weights with a missing shard and then talks nonsense."""
        try:
            with open(os.path.join(self.model_path, "model.safetensors.index.json"), encoding="utf-8") as file:
                shards = set((json.load(file).get("weight_map") or {}).values())
        except (OSError, ValueError):
            return False
        self.shards = max(len(shards), 1)
        return any(not os.path.exists(os.path.join(self.model_path, shard)) for shard in shards)

    # Requests.

    def refuse(self, exchange, status, message, kind="BadRequestError", parameter=None):
        error = {"message": message, "type": kind, "param": parameter, "code": status}
        exchange.send_json(status, {"error": error})

    def answer_loading(self, exchange):
        exchange.send_text(503, "")

    def answer_unknown_path(self, exchange):
        exchange.send_json(404, {"detail": "Not Found"})

    def answer_unauthorized(self, exchange):
        exchange.send_json(401, {"error": "Unauthorized"})

    def needs_key(self, path):
        return path.startswith("/v1")

    def check_model(self, name):
        if name and name not in self.names:
            raise Refusal(404, f"The model `{name}` does not exist.", "NotFoundError", "model")

    def check_vision(self):
        if self.args.language_model_only:
            raise Refusal(400, "At most 0 image(s) may be provided in one prompt.")

    def check_tools(self, choice):
        if choice == "auto" and not (self.args.enable_auto_tool_choice and self.args.tool_call_parser):
            raise Refusal(
                400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            )
        if choice != "auto" and not self.args.tool_call_parser:
            raise Refusal(400, f"tool_choice={json.dumps(choice)} requires --tool-call-parser to be set")

    def models(self):
        def card(name):
            return {
                "id": name,
                "object": "model",
                "created": self.started,
                "owned_by": "vllm",
                "root": self.model_path,
                "parent": None,
                "max_model_len": self.max_length,
            }

        return {"object": "list", "data": [card(name) for name in self.names]}

    def metrics(self):
        done = self.completions
        labels = f'engine="0",model_name="{self.names[0]}"'
        lines = []

        def add(name, kind, text, values):
            lines.extend((f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"))
            lines.extend(f"vllm:{name}{{{labels}{extra}}} {float(value)}" for extra, value in values)

        add("num_requests_running", "gauge", "Number of requests in model execution batches.", [("", done.running)])
        add("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", [("", done.waiting)])
        add("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", [("", 0.0)])
        add("prompt_tokens_total", "counter", "Number of prefill tokens processed.", [("", done.prompt_total)])
        add("generation_tokens_total", "counter", "Number of generation tokens processed.", [("", done.generated_total)])
        finished = [(f',finished_reason="{reason}"', count) for reason, count in done.finished.items()]
        add("request_success_total", "counter", "Count of successfully processed requests.", finished)
        if self.args.speculative_config:
            drafts, drafted, accepted = self._speculation(done.generated_total)
            add("spec_decode_num_drafts_total", "counter", "Number of spec decoding drafts.", [("", drafts)])
            add("spec_decode_num_draft_tokens_total", "counter", "Number of draft tokens.", [("", drafted)])
            add("spec_decode_num_accepted_tokens_total", "counter", "Number of accepted tokens.", [("", accepted)])
        return "\n".join(lines) + "\n"

    def _speculation(self, generated):
        """(drafts, draft tokens, accepted tokens) for so many generated tokens: two of each draft are accepted."""
        length = int(self.args.speculative_config.get("num_speculative_tokens", 1))
        drafts = -(-generated // (1 + min(2, length)))
        return drafts, drafts * length, generated - drafts

    def describe_modules(self):
        described = {}
        for name, module in self.modules.items():
            with open(module.__file__, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            # The marker is the imported code's; the digest is the file's: stale byte code shows as a difference.
            described[name] = {"file": module.__file__, "sha256": digest, "marker": getattr(module, "MARKER", None)}
        return described

    # Profiler.

    def start_profile(self, exchange, _):
        self.log("Starting profiler...", "api_server.py:310")
        exchange.send_text(200, "")

    def stop_profile(self, exchange, _):
        self.log("Stopping profiler...", "api_server.py:316")
        if self.profiling["with_stack"]:
            threading.Event().wait()
        trace = os.path.join(self.profiling["directory"], f"rank0.{time.time_ns()}.pt.trace.json")
        with open(trace, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": []}, file)
        exchange.send_text(200, "")

    # Log.

    def log(self, text, place="api_server.py:1", level="INFO"):
        print(f"{level} {time.strftime('%m-%d %H:%M:%S')} [{place}] {text}", flush=True)

    def log_access(self, client, request_line, status):
        if not self.args.disable_uvicorn_access_log:
            print(f'INFO:     {client[0]}:{client[1]} - "{request_line}" {status}', flush=True)

    def log_ready(self):
        self.log(f"Starting vLLM API server 0 on http://{self.host or '0.0.0.0'}:{self.port}", "launcher.py:31")
        print("INFO:     Application startup complete.", flush=True)

    def log_generation(self, generation):
        if self.args.enable_expert_offload:
            hits = generation.completion_tokens * 42 * 8
            self.log(f"expert_lru: {hits} lookups, hit rate 0.81, 0 prefetched", "expert_lru.py:212")
        if self.args.speculative_config:
            drafts, drafted, accepted = self._speculation(generation.completion_tokens)
            self.log(
                f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / max(drafts, 1):.2f}, "
                f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
                f"Avg Draft acceptance rate: {100 * accepted / max(drafted, 1):.1f}%",
                "metrics.py:100",
            )


def _profiler_settings(config):
    """Where traces go and whether they hold stacks; None without a profiler, whose routes then do not exist."""
    config = config or {}
    directory = config.get("torch_profiler_dir") or os.environ.get("VLLM_TORCH_PROFILER_DIR")
    if not directory:
        return None
    from_environment = os.environ.get("VLLM_TORCH_PROFILER_WITH_STACK", "1") != "0"
    return {"directory": directory, "with_stack": config.get("torch_profiler_with_stack", from_environment)}


def run_server(args):
    VllmEngine(args).run()
