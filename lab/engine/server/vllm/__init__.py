"""A miniature of the recorded vLLM fork, for the lab. Own writing; shares names with the original, no code."""

__version__ = "0.0.0+lab"
