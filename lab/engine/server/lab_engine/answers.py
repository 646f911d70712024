"""What the double says: the same request always gets the same words, and simple questions the right ones."""

import base64
import binascii
import json
import re

from lab_engine.picture import PictureError, dominant_colour

REASONING = "The user asks something simple. I check it and answer in one line."
PROSE = (
    "The old harbour lay quiet in the morning, and the boats moved a little against the stones. "
    "Nobody had come to the market yet, so the square belonged to the gulls. "
)
CAPITALS = {"france": "Paris", "germany": "Berlin", "italy": "Rome", "japan": "Tokyo", "spain": "Madrid"}
OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "×": lambda a, b: a * b,
}


class BadRequest(ValueError):
    """A request body that the engine refuses with status 400."""


def tokens(text):
    """Words with the white space before them: joined they are the text again."""
    return re.findall(r"\s*\S+|\s+$", text)


def _known(text):
    exact = re.search(r"(?:repeat|reply|answer|respond)(?: with)? exactly:\s*(.+)", text, re.IGNORECASE | re.DOTALL)
    if exact:
        return exact[1].strip()
    capital = re.search(r"capital of (\w+)", text, re.IGNORECASE)
    if capital and capital[1].lower() in CAPITALS:
        return CAPITALS[capital[1].lower()]
    sum_ = re.search(r"(\d+)\s*([-+*×])\s*(\d+)", text)
    if sum_:
        left, sign, right = sum_.groups()
        return f"{left} {sign} {right} = {OPERATIONS[sign](int(left), int(right))}"
    return None


def _value(name, schema, text):
    if schema.get("enum"):
        return schema["enum"][0]
    if name in ("location", "city", "place"):
        place = re.search(r"\b(?:in|for|at) ([A-Z]\w*(?: [A-Z]\w*)*)", text)
        return place[1] if place else "Paris"
    return {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}.get(schema.get("type"), "text")


def _call(tools, text):
    functions = [tool.get("function") or {} for tool in tools]
    words = set(re.findall(r"\w+", text.lower()))
    chosen = next((f for f in functions if words & set(f.get("name", "").lower().split("_"))), functions[0])
    properties = (chosen.get("parameters") or {}).get("properties") or {}
    arguments = {name: _value(name, schema or {}, text) for name, schema in properties.items()}
    return chosen.get("name", ""), json.dumps(arguments)


def _parts(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content, []
    texts, pictures = [], []
    for part in content:
        if part.get("type") == "image_url":
            pictures.append((part.get("image_url") or {}).get("url", ""))
        else:
            texts.append(part.get("text", ""))
    return "\n".join(texts), pictures


def _picture(url):
    head, comma, body = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        raise BadRequest("only base64 data URLs are supported for image_url")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise BadRequest(f"image_url is not valid base64: {error}") from error


def has_picture(messages):
    return any(_parts(message)[1] for message in messages)


def chat_answer(messages, tools, must_call):
    """(text, tool call): one of them is None. A tool call is (name, arguments as JSON)."""
    text, pictures = _parts(messages[-1])
    if pictures:
        try:
            return f"The image shows a solid {dominant_colour(_picture(pictures[-1]))} square.", None
        except PictureError as error:
            raise BadRequest(f"cannot identify image: {error}") from error
    if messages[-1].get("role") == "tool":
        return f"The tool says: {text}", None
    known = _known(text)
    if tools and (must_call or known is None):
        return None, _call(tools, text)
    return known or PROSE.strip(), None


def completion_answer(prompt):
    """The continuation of a bare prompt, without thinking: the chat template is what asks for that."""
    return " " + (_known(prompt) or PROSE.strip())


def prompt_tokens(messages):
    return sum(4 + len(tokens(_parts(message)[0])) + 256 * len(_parts(message)[1]) for message in messages)
