"""The encoder-decoder Transformer of "Attention Is All You Need" (arXiv:1706.03762)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model.attention import KeyValue
from model.config import TransformerConfig
from model.dropout import Dropout
from model.layers import Cache, DecoderLayer, EncoderLayer
from model.norms import new_norm
from model.positions import Positions
from model.relative import new_bias


class Transformer(nn.Module):
    """One definition for training (`forward`) and decoding (`encode`, `project_memory`, `step`)."""

    def __init__(self, config: TransformerConfig, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.dropout = Dropout(dropout)
        self.embedding_factor = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        # From ids [...] to [..., d_model]; an export stores the tables as bytes.
        self.source_embedding: nn.Module = nn.Embedding(config.source_vocabulary_size, config.d_model)
        self.target_embedding: nn.Module = (
            self.source_embedding
            if config.share_embeddings
            else nn.Embedding(config.target_vocabulary_size, config.d_model)
        )
        self.relative = config.positions == "relative"
        self.encoder_bias = new_bias(config, config.heads, config.encoder_layers, causal=False)
        self.decoder_bias = new_bias(config, config.decoder_head_count, config.decoder_layers, causal=True)
        if not self.relative:
            self.source_positions = Positions(config)
            self.target_positions = Positions(config)
        if config.embedding_norm:
            self.source_norm = new_norm(config)
            self.target_norm = new_norm(config)
        self.encoder = nn.ModuleList(EncoderLayer(config, dropout) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, dropout) for _ in range(config.decoder_layers))
        if config.norm == "pre":
            self.encoder_norm = new_norm(config)
            self.decoder_norm = new_norm(config)
        self.output = nn.Linear(config.d_model, config.target_vocabulary_size, bias=config.output_bias)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight
        self._initialize()

    def _initialize(self) -> None:
        width = self.config.d_model
        for name, parameter in self.named_parameters():
            if "embedding" in name or name == "output.weight":
                nn.init.normal_(parameter, std=width**-0.5)
            elif parameter.dim() == 2 and not name.endswith("table"):
                # Packed projections are initialized block by block, as if they were separate.
                for block in parameter.chunk(self._packed(name)):
                    nn.init.xavier_uniform_(block)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def _packed(self, name: str) -> int:
        """Give the number of projections packed in a weight, by its name."""
        if "query_key_value" in name:
            return 3
        return 2 if "key_value" in name or "gate_input" in name or (self.config.gated and "expand" in name) else 1

    def embed_source(self, source: Tensor) -> Tensor:
        """Embed source ids, int [batch, source]. Returns [batch, source, d_model]."""
        positions = torch.arange(source.shape[1], device=source.device)
        states = self._scale(self.source_embedding(source))
        if not self.relative:
            states = states + self.source_positions(positions)
        states = self.source_norm(states) if self.config.embedding_norm else states
        return self.dropout(states)  # type: ignore[no-any-return]

    def embed_target(self, target: Tensor, positions: Tensor) -> Tensor:
        """Embed target ids, int [batch, target]; positions: int, broadcast to it. Returns [batch, target, d_model]."""
        states = self._scale(self.target_embedding(target))
        if not self.relative:
            states = states + self.target_positions(positions)
        states = self.target_norm(states) if self.config.embedding_norm else states
        return self.dropout(states)  # type: ignore[no-any-return]

    def _scale(self, states: Tensor) -> Tensor:
        return states if self.embedding_factor == 1.0 else states * self.embedding_factor

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """Encode padded source ids [batch, source] with lengths [batch] to [batch, source, d_model]."""
        states = self.embed_source(source)
        for layer, bias in zip(self.encoder, self.encoder_bias.of_sequences(source), strict=True):
            states = layer(states, source_lengths, bias)
        return self.encoder_norm(states) if self.config.norm == "pre" else states

    def decode(self, target: Tensor, source: Tensor, source_lengths: Tensor) -> Tensor:
        """Compute the last hidden states under a causal mask.

        Args:
            target: int [batch, target], beginning with the start id.
            source: [batch, source, d_model], from `encode`.
            source_lengths: int [batch].

        Returns:
            [batch, target, d_model]; `output` computes logits from it.
        """
        positions = torch.arange(target.shape[1], device=target.device)
        states = self.embed_target(target, positions)
        for layer, bias in zip(self.decoder, self.decoder_bias.of_sequences(target), strict=True):
            states = layer(states, source, source_lengths, bias)
        return self.decoder_norm(states) if self.config.norm == "pre" else states

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Compute the logits of every next token: [batch, target, vocabulary]."""
        return self.output(self.decode(target, self.encode(source, source_lengths), source_lengths))  # type: ignore[no-any-return]

    def project_memory(self, source: Tensor) -> list[KeyValue]:
        """Compute the source keys and values of every decoder layer, each [batch, heads, source, head_dim]."""
        heads = (self.config.decoder_head_count, self.config.head_dim)
        return [
            tuple(part.unflatten(-1, heads).transpose(1, 2) for part in keys_values.chunk(2, dim=-1))
            for keys_values in (layer.cross_attention.key_value(source) for layer in self.decoder)  # type: ignore[operator, union-attr]
        ]

    def step(
        self, ids: Tensor, lengths: Tensor, caches: Sequence[Cache], memory: list[KeyValue], memory_lengths: Tensor
    ) -> tuple[Tensor, list[Cache]]:
        """Run one decode step of every row.

        Args:
            ids: int [batch], the last token of each row (at first the start id).
            lengths: int32 [batch], tokens decoded before it.
            caches: each layer's own keys and values, [batch, heads, capacity, head_dim], written in place; for a layer
                with a recurrence its state, float32 [batch, d_model].
            memory: each layer's keys and values of the source, from `project_memory`.
            memory_lengths: int32 [batch].

        Returns:
            Logits [batch, vocabulary] and the caches.
        """
        states = self.embed_target(ids[:, None], lengths[:, None])
        biases = self.decoder_bias.of_step(lengths, caches)
        present = []
        for layer, cache, source, bias in zip(self.decoder, caches, memory, biases, strict=True):
            states, cache = layer.step(states, cache, lengths, source, memory_lengths, bias)  # type: ignore[operator]
            present.append(cache)
        states = self.decoder_norm(states) if self.config.norm == "pre" else states
        return self.output(states.squeeze(1)), present

    def new_caches(self, batch: int, capacity: int) -> list[Cache]:
        """Make empty caches for `batch` rows of up to `capacity` tokens, one for each decoder layer; see `step`."""
        if self.config.decoder_cell == "ssru":
            state = (batch, self.config.d_model)
            return [(self.output.weight.new_zeros(state, dtype=torch.float32),) for _ in self.decoder]
        shape = (batch, self.config.decoder_head_count, capacity, self.config.head_dim)
        weight = self.output.weight
        return [(weight.new_zeros(shape), weight.new_zeros(shape)) for _ in self.decoder]
