"""OpenAI-compatible completions, whole and streamed, with the faults that concern them."""

import itertools
import threading
import time
from contextlib import contextmanager

from lab_engine import answers

GARBAGE = "!" * 48
TOOL_TEXT = "<tool_call>{name}\n{arguments}</tool_call>"


class Refusal(Exception):
    """The engine refuses the request: HTTP status, its type in the engine's words, the parameter to blame."""

    def __init__(self, status, message, kind="BadRequestError", parameter=None):
        super().__init__(message)
        self.status, self.kind, self.parameter = status, kind, parameter


class Generation:
    """What will be said: (field, token) pairs, then perhaps a tool call, then why it ended."""

    def __init__(self, pairs, call, prompt_tokens, limit):
        self.pairs = pairs[:limit]
        cut = len(pairs) > limit
        self.call = None if cut else call
        self.finish_reason = "length" if cut else "tool_calls" if call else "stop"
        self.prompt_tokens = prompt_tokens
        call_tokens = len(answers.tokens(" ".join(call))) if self.call else 0
        self.completion_tokens = len(self.pairs) + call_tokens

    def text(self, field):
        return "".join(token for name, token in self.pairs if name == field)

    def usage(self):
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }


class Completions:
    """Counts, limits and answers requests. `parallel` requests run at once, the others wait."""

    def __init__(self, engine, parallel):
        self.engine = engine
        self.numbers = itertools.count(1)
        self.begun = itertools.count(1)
        self.slots = threading.Semaphore(parallel)
        self.lock = threading.Lock()
        self.running = self.waiting = 0
        self.prompt_total = self.generated_total = 0
        self.finished = {"stop": 0, "length": 0, "tool_calls": 0}

    def chat(self, exchange, body):
        self._answer(exchange, body, self._chat_generation, _ChatShape)

    def text(self, exchange, body):
        self._answer(exchange, body, self._text_generation, _TextShape)

    def _answer(self, exchange, body, generate, shape_of):
        engine = self.engine
        try:
            engine.check_model(body.get("model"))
            generation = generate(body)
        except Refusal as refusal:
            engine.refuse(exchange, refusal.status, str(refusal), refusal.kind, refusal.parameter)
            return
        except (answers.BadRequest, AttributeError, TypeError, ValueError, LookupError) as error:
            engine.refuse(exchange, 400, str(error) or type(error).__name__)
            return
        shape = shape_of(engine, next(self.numbers), body.get("model") or engine.names[0])
        with self._slot():
            if body.get("stream"):
                include_usage = (body.get("stream_options") or {}).get("include_usage", False)
                self._stream(exchange, generation, shape, include_usage)
            else:
                self._whole(exchange, generation, shape)
        with self.lock:
            self.prompt_total += generation.prompt_tokens
            self.generated_total += generation.completion_tokens
            self.finished[generation.finish_reason] += 1
        engine.log_generation(generation)

    @contextmanager
    def _slot(self):
        with self.lock:
            self.waiting += 1
        with self.slots:
            with self.lock:
                self.waiting -= 1
                self.running += 1
            try:
                yield
            finally:
                with self.lock:
                    self.running -= 1

    def _hangs(self):
        faults = self.engine.settings.faults
        return "hang-after-headers" in faults or ("hang-on-second" in faults and next(self.begun) > 1)

    def _whole(self, exchange, generation, shape):
        if self._hangs():
            exchange.start("application/json")
            _never()
        time.sleep(self.engine.settings.token_seconds * generation.completion_tokens)
        exchange.send_json(200, shape.whole(generation))

    def _stream(self, exchange, generation, shape, include_usage):
        exchange.start("text/event-stream; charset=utf-8")
        if self._hangs():
            _never()
        for event in shape.events(generation):
            exchange.send_event(event)
            time.sleep(self.engine.settings.token_seconds)
        if include_usage:
            exchange.send_event(shape.usage_event(generation))
        exchange.send_event("[DONE]")
        exchange.finish_parts()

    def _limit(self, body, prompt_tokens):
        wanted = body.get("max_completion_tokens") or body.get("max_tokens")
        room = self.engine.max_length - prompt_tokens
        if room <= 0 or (wanted or 0) > room:
            raise Refusal(
                400,
                f"This model's maximum context length is {self.engine.max_length} tokens. However, you requested "
                f"{wanted or 1} output tokens and your prompt contains {prompt_tokens} input tokens.",
                parameter="max_tokens",
            )
        return wanted or room

    def _said(self, content, body, limit):
        """Tokens of the content after the faults; more prose when the request forbids an early end."""
        faults = self.engine.settings.faults
        if "empty-completions" in faults:
            return []
        if "garbage" in faults or self.engine.damaged:
            return list(GARBAGE)[:limit]
        said = answers.tokens(content)
        wanted = limit if body.get("ignore_eos") else min(body.get("min_tokens") or 0, limit)
        while len(said) < wanted:
            said += answers.tokens(" " + answers.PROSE.strip())
        return said if not body.get("ignore_eos") else said[:wanted]

    def _chat_generation(self, body):
        engine = self.engine
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise Refusal(400, "Field required: messages", parameter="messages")
        if answers.has_picture(messages):
            engine.check_vision()
        tools = body.get("tools") or []
        choice = body.get("tool_choice") or ("auto" if tools else "none")
        if tools and choice != "none":
            engine.check_tools(choice)
        prompt_tokens = answers.prompt_tokens(messages)
        limit = self._limit(body, prompt_tokens)
        content, call = answers.chat_answer(messages, tools if choice != "none" else [], choice not in ("auto", "none"))
        faults = engine.settings.faults
        if call and "no-tools" in faults:
            content, call = TOOL_TEXT.format(name=call[0], arguments=call[1]), None
        if call and ("empty-completions" in faults or "garbage" in faults):
            content, call = "", None
        thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
        if "empty-completions" in faults:
            thinks = False
        pairs = []
        if thinks:
            separate = engine.separates_reasoning and "leak-reasoning" not in faults
            pairs = [("reasoning" if separate else "content", token) for token in answers.tokens(answers.REASONING)]
            if not separate:
                pairs.append(("content", "</think>\n\n"))
        if content is not None:
            pairs += [("content", token) for token in self._said(content, body, max(limit - len(pairs), 0))]
        return Generation(pairs, call, prompt_tokens, limit)

    def _text_generation(self, body):
        prompt = body.get("prompt")
        if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise Refusal(400, "Field required: prompt (a text)", parameter="prompt")
        prompt_tokens = len(answers.tokens(prompt))
        # The original's default for bare completions.
        limit = self._limit({"max_tokens": 16, **body}, prompt_tokens)
        said = self._said(answers.completion_answer(prompt), body, limit)
        return Generation([("content", token) for token in said], None, prompt_tokens, limit)


def _never():
    threading.Event().wait()


class _Shape:
    """How an answer looks on the wire."""

    def __init__(self, engine, number, model):
        self.engine = engine
        self.head = {"id": f"{self.prefix}-{number:032x}", "created": int(time.time()), "model": model}

    def _chunk(self, choices):
        return {**self.head, "object": self.chunk_object, "choices": choices}

    def usage_event(self, generation):
        return {**self._chunk([]), "usage": generation.usage()}


class _ChatShape(_Shape):
    prefix = "chatcmpl"
    chunk_object = "chat.completion.chunk"

    def _calls(self, call, index):
        name, arguments = call
        entry = {"id": f"call_{self.head['id'][-8:]}", "type": "function"}
        entry["function"] = {"name": name, "arguments": arguments}
        return [{**index, **entry}]

    def whole(self, generation):
        message = {"role": "assistant", "content": generation.text("content"), "tool_calls": []}
        # The original gives null, not "", for a turn that only thought or only called a tool.
        if not message["content"] and (generation.call or generation.finish_reason == "length"):
            message["content"] = None
        message[self.engine.reasoning_field] = generation.text("reasoning") or None
        if generation.call:
            message["tool_calls"] = self._calls(generation.call, {})
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": generation.finish_reason}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": generation.usage()}

    def events(self, generation):
        yield self._delta({"role": "assistant", "content": ""})
        for field, token in generation.pairs:
            yield self._delta({self.engine.reasoning_field if field == "reasoning" else "content": token})
        if generation.call:
            yield self._delta({"tool_calls": self._calls(generation.call, {"index": 0})})
        yield self._delta({}, generation.finish_reason)

    def _delta(self, delta, finish_reason=None):
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])


class _TextShape(_Shape):
    prefix = "cmpl"
    chunk_object = "text_completion"

    def whole(self, generation):
        return {
            **self._chunk([self._choice(generation.text("content"), generation.finish_reason)]),
            "usage": generation.usage(),
        }

    def events(self, generation):
        for _, token in generation.pairs:
            yield self._chunk([self._choice(token, None)])
        yield self._chunk([self._choice("", generation.finish_reason)])

    @staticmethod
    def _choice(text, finish_reason):
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}
