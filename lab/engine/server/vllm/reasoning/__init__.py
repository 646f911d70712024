"""The registry of reasoning parsers, by the names that the original has."""


class ReasoningParserManager:
    # Name -> module and class, imported when they are asked for. The double has none of the classes.
    lazy_parsers = {
        name: (f"vllm.reasoning.{name}", "ReasoningParser")
        for name in ("deepseek_r1", "deepseek_v3", "glm45", "glm47", "openai_gptoss", "qwen3")
    }
    reasoning_parsers = {}

    @classmethod
    def list_registered(cls):
        return sorted({*cls.reasoning_parsers, *cls.lazy_parsers})
