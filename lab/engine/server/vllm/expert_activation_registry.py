"""Which experts a token activates."""

MARKER = "image"

ROUTED_EXPERTS = 8


def activated(scores):
    """Indexes of the experts with the highest scores, best first."""
    return sorted(range(len(scores)), key=lambda expert: -scores[expert])[:ROUTED_EXPERTS]
