"""The decoder of the GLM family: how many layers of which kind."""

MARKER = "image"

MOE_LAYERS = 42
LINEAR_ATTENTION_LAYERS = 34
EXPERTS_PER_LAYER = 288


class Glm5NextDecoderLayer:
    """One layer: attention, then either a dense block or experts."""

    def __init__(self, index, dense_layers):
        self.index = index
        self.is_dense = index < dense_layers

    def forward(self, hidden, positions):
        residual = hidden
        hidden = self.normalize(hidden)
        return self.combine(residual, hidden, positions)

    def normalize(self, hidden):
        return hidden

    def combine(self, residual, hidden, positions):
        return residual + hidden


class Glm5NextDraftLayer:
    """The layer that drafts tokens ahead; same steps, other weights."""

    def __init__(self, index, dense_layers):
        self.index = index
        self.is_dense = index < dense_layers

    def forward(self, hidden, positions):
        residual = hidden
        hidden = self.normalize(hidden)
        return self.combine(residual, hidden, positions)

    def normalize(self, hidden):
        return hidden

    def combine(self, residual, hidden, positions):
        return residual + hidden


def swappable_experts():
    return MOE_LAYERS * EXPERTS_PER_LAYER
