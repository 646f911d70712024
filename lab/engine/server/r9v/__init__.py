"""A miniature of the R9V engine (llama.cpp-like), for the lab. Own writing; shares names with the original, no code."""
