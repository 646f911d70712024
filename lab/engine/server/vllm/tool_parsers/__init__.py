"""The registry of tool parsers, by the names that the original has."""


class ToolParserManager:
    # Name -> module and class, imported when they are asked for. The double has none of the classes.
    lazy_parsers = {
        name: (f"vllm.tool_parsers.{name}", "ToolParser")
        for name in (
            "deepseek_v3",
            "glm45",
            "glm47",
            "hermes",
            "llama3_json",
            "mistral",
            "openai",
            "qwen3_coder",
            "qwen3_xml",
        )
    }
    tool_parsers = {}

    @classmethod
    def list_registered(cls):
        return sorted({*cls.tool_parsers, *cls.lazy_parsers})
