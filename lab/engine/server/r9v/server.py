"""R9V's server: an OpenAI-compatible API in llama.cpp's words."""

import os
import re
import sys
import time

from lab_engine import settings
from lab_engine.completions import Refusal
from lab_engine.engine import Engine, LoadError
from r9v.arguments import parse_or_exit

SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


class R9vEngine(Engine):
    while_loading = "503"
    reasoning_field = "reasoning_content"

    def __init__(self, args):
        self.args = args
        self.damaged = False
        self.separates_reasoning = args["reasoning_format"] != "none"
        names = [name for name in args["alias"].split(",") if name] or [os.path.basename(args["model"])]
        super().__init__(
            settings.from_environment(self.while_loading),
            args["host"],
            args["port"],
            names,
            args["ctx_size"],
            args["parallel"],
            (args["api_key"] or os.environ.get("LLAMA_API_KEY", "")).split(","),
        )
        self.routes = {
            ("GET", "/health"): self.health,
            ("GET", "/v1/health"): self.health,
            ("GET", "/models"): lambda exchange, _: exchange.send_json(200, self.models()),
            ("GET", "/v1/models"): lambda exchange, _: exchange.send_json(200, self.models()),
            ("GET", "/props"): lambda exchange, _: exchange.send_json(200, self.properties()),
            ("GET", "/metrics"): self.metrics,
            ("POST", "/v1/chat/completions"): self.completions.chat,
            ("POST", "/v1/completions"): self.completions.text,
        }

    # Loading.

    def check_load(self):
        self._check_model_files()
        state = self.args["state_dir"]
        if not state:
            return
        try:
            with open(os.path.join(state, "starts.log"), "a", encoding="utf-8") as file:
                file.write(f"{time.time_ns()} {','.join(self.names)}\n")
        except OSError as error:
            raise LoadError(f"state directory {state} is not writable: {error.strerror}") from error

    def _check_model_files(self):
        path = self.args["model"]
        files = [path]
        split = SPLIT.search(path)
        if split:
            index, count = int(split[1]), int(split[2])
            if index != 1:
                raise LoadError(
                    f"illegal split file idx: {index - 1} (file: {path}), model must be loaded with the first split"
                )
            stem = path[: split.start()]
            files = [f"{stem}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1)]
            self.shards = count
        for file in files:
            try:
                with open(file, "rb") as opened:
                    magic = opened.read(4)
            except OSError as error:
                raise LoadError(f"gguf_init_from_file: failed to open GGUF file '{file}' ({error.strerror})") from error
            if magic != b"GGUF":
                raise LoadError(f"gguf_init_from_file: invalid magic characters in '{file}', expected 'GGUF'")

    # Requests.

    def refuse(self, exchange, status, message, kind="invalid_request_error", parameter=None):
        exchange.send_json(status, {"error": {"code": status, "message": message, "type": kind}})

    def health(self, exchange, _):
        exchange.send_json(200, {"status": "ok"})

    def answer_loading(self, exchange):
        self.refuse(exchange, 503, "Loading model", "unavailable_error")

    def answer_unknown_path(self, exchange):
        self.refuse(exchange, 404, "File Not Found", "not_found_error")

    def answer_unauthorized(self, exchange):
        self.refuse(exchange, 401, "Invalid API Key", "authentication_error")

    def needs_key(self, path):
        return path not in ("/health", "/v1/health", "/models", "/v1/models")

    def check_model(self, name):
        """llama.cpp with one model answers to any name."""

    def check_vision(self):
        if not self.args["mmproj"]:
            raise Refusal(500, "image input is not supported - hint: you may need to provide the mmproj", "server_error")

    def check_tools(self, choice):
        if self.args["no_jinja"]:
            raise Refusal(500, "tools param requires --jinja flag", "server_error")

    def models(self):
        def card(name):
            return {
                "id": name,
                "object": "model",
                "created": self.started,
                "owned_by": "llamacpp",
                "meta": {"n_ctx": self.max_length, "n_ctx_train": 262144, "n_params": 80_000_000_000},
            }

        return {"object": "list", "data": [card(name) for name in self.names]}

    def properties(self):
        return {
            "default_generation_settings": {"n_ctx": self.max_length},
            "total_slots": self.args["parallel"],
            "model_alias": self.names[0],
            "model_path": self.args["model"],
            "modalities": {"vision": bool(self.args["mmproj"]), "audio": False},
        }

    def metrics(self, exchange, _):
        if not self.args["metrics"]:
            self.refuse(
                exchange,
                501,
                "This server does not support metrics endpoint. Start it with `--metrics`",
                "not_supported_error",
            )
            return
        done = self.completions
        values = (
            ("prompt_tokens_total", "counter", "Number of prompt tokens processed.", done.prompt_total),
            ("tokens_predicted_total", "counter", "Number of generation tokens processed.", done.generated_total),
            ("requests_processing", "gauge", "Number of requests processing.", done.running),
            ("requests_deferred", "gauge", "Number of requests deferred.", done.waiting),
        )
        exchange.send_text(
            200,
            "".join(
                f"# HELP llamacpp:{name} {text}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value}\n"
                for name, kind, text, value in values
            ),
        )

    # Log.

    def log(self, text, place="main", level="INFO"):
        print(f"{place.partition('.')[0]}: {'error: ' if level == 'ERROR' else ''}{text}", flush=True)

    def log_access(self, client, request_line, status):
        method, path = (request_line.split(" ") + ["", ""])[:2]
        print(f"srv  log_server_r: request: {method} {path} {client[0]} {status}", flush=True)

    def log_ready(self):
        self.log(f"server is listening on http://{self.host}:{self.port} - starting the main loop")

    def log_generation(self, generation):
        print(f"slot print_timing: eval time / {generation.completion_tokens} tokens", flush=True)


def main():
    R9vEngine(parse_or_exit(sys.argv[1:])).run()


if __name__ == "__main__":
    main()
