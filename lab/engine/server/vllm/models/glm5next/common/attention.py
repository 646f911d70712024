"""Attention of the GLM family and its sparse indexer."""

MARKER = "image"

BACKEND = "ROCM_MLA_SPARSE"
INDEXER_HEADS = 64
INDEXER_TOP_K = 2048


def indexer_workspace_bytes(batched_tokens):
    """Scores of every head over the best positions, two bytes each."""
    return INDEXER_HEADS * INDEXER_TOP_K * batched_tokens * 2
