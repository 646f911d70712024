"""How much memory the key-value cache is given."""

MARKER = "image"

BYTES_PER_TOKEN = 13_600
DRAFTER_BYTES_PER_TOKEN = 4_096 + 5 * 4_096 * 2
DRAFTERS = ("dflash", "dspark", "extract_hidden_states")


def reserve_bytes(max_length, speculative_config):
    """Bytes reserved per rank; a drafter that keeps hidden states needs more per token."""
    per_token = BYTES_PER_TOKEN
    if (speculative_config or {}).get("method") in DRAFTERS:
        per_token += DRAFTER_BYTES_PER_TOKEN
    return per_token * max_length
