/**
 * Python that reaches the argument parser and the registries of an image's vLLM by the names that its releases have
 * had, 0.8 to 0.30. What the engine's modules print goes to standard error; `answer` is the real standard output.
 * Ends with status 1 and the reasons where a name is nowhere.
 */
const prelude = `
import importlib, json, os, sys

answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def find(name, *modules):
    reasons = []
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            reasons.append(str(error))
    sys.exit(f"no {name}: {'; '.join(reasons)}")

def registered(manager):
    if hasattr(manager, "list_registered"):
        return sorted(manager.list_registered())
    names = ("tool_parsers", "reasoning_parsers", "lazy_parsers")
    return sorted({name for attribute in names for name in getattr(manager, attribute, None) or ()})

parser = find("make_arg_parser", "vllm.entrypoints.openai.cli_args")(
    find("FlexibleArgumentParser", "vllm.utils.argparse_utils", "vllm.utils")()
)

def tool_parsers():
    return registered(find("ToolParserManager", "vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers"))

def reasoning_parsers():
    return registered(find("ReasoningParserManager", "vllm.reasoning"))
`;

/**
 * Parses the arguments that follow it and starts nothing; status 2 and argparse's message where they are refused. The
 * engine itself looks parsers up after parsing, so that is done too where the image has its registries.
 */
export const parseArguments = `${prelude}
arguments = parser.parse_args(sys.argv[1:])
plugins = ("tool_parser_plugin", "reasoning_parser_plugin")
if not any(getattr(arguments, plugin, None) for plugin in plugins):
    for attribute, known in (("tool_call_parser", tool_parsers), ("reasoning_parser", reasoning_parsers)):
        name = getattr(arguments, attribute, None)
        if not name:
            continue
        try:
            names = known()
        except SystemExit:
            continue
        if name not in names:
            flag = "--" + attribute.replace("_", "-")
            parser.error(f"argument {flag}: invalid choice: {name!r} (choose from {', '.join(names)})")
`;

/** Prints version, flags and parsers as one JSON document, in the form of a description without its entrypoint. */
export const describeParser = `${prelude}
import vllm

def is_json(parse):
    """Whether it takes an object for text, and does not take just any text."""
    if not callable(parse) or parse in (str, int, float, bool):
        return False
    try:
        if isinstance(parse("{}"), str):
            return False
    except Exception:
        return False
    try:
        parse("no JSON")
    except Exception:
        return True
    return False

def takes(action):
    if action.nargs == 0:
        return "nothing"
    if action.nargs == "?":
        return "optional"
    if action.nargs is not None:
        return "list"
    return "json" if is_json(action.type) else "value"

def described(action):
    whole = [spelling for spelling in action.option_strings if spelling.startswith("--")]
    positive = [spelling for spelling in whole if not spelling.startswith("--no-")]
    name = (positive or whole or action.option_strings)[0]
    flag = {"takes": takes(action)}
    aliases = sorted(set(action.option_strings) - {name})
    if aliases:
        flag["aliases"] = aliases
    if action.choices and action.nargs != 0:
        flag["choices"] = [str(choice) for choice in action.choices]
    return name, flag

json.dump(
    {
        "version": str(getattr(vllm, "__version__", "unknown")),
        "flags": dict(described(action) for action in parser._actions if action.option_strings),
        "toolParsers": tool_parsers(),
        "reasoningParsers": reasoning_parsers(),
    },
    answer,
)
answer.flush()
`;
