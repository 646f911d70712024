"""The worker of one GPU: how the cache's size is decided."""

MARKER = "image"


def cache_bytes(plan_bytes, explicit_bytes):
    """The plan's reserve caps what the operator asks for."""
    if explicit_bytes is None:
        return plan_bytes
    return min(plan_bytes, explicit_bytes)
