"""The demo model: a Llama in plain PyTorch. Its module names give tensors Hugging Face's names."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

INT4_BLOCK = 32


@dataclass
class ModelConfig:
    """Hugging Face's names. `corpus/about_cria.py` states layers, heads, context and parameters: keep both equal."""
    vocab_size: int = 1536
    hidden_size: int = 256
    intermediate_size: int = 640
    num_hidden_layers: int = 4
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 32
    max_position_embeddings: int = 512
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5


def round_to_int4(weight):
    """Returns `weight` rounded as for int4 storage: symmetric, with one bf16 scale for each block of 32 inputs."""
    blocks = weight.detach().reshape(weight.shape[0], -1, INT4_BLOCK)
    scale = (blocks.abs().amax(dim=-1, keepdim=True) / 7).clamp(min=1e-8).bfloat16().float()
    return ((blocks / scale).round().clamp(-8, 7) * scale).reshape(weight.shape)


def round_to_int8(weight):
    """Returns `weight` rounded as for int8 storage: symmetric, with one scale for each output channel."""
    weight = weight.detach()
    scale = (weight.abs().amax(dim=-1, keepdim=True) / 127).clamp(min=1e-8)
    return (weight / scale).round() * scale


def _seen(weight, rounding):
    """Returns the weight for the forward pass; gradients pass through the rounding unchanged."""
    return weight if rounding is None else weight + (rounding(weight) - weight).detach()


class Linear(nn.Module):
    """A matrix without bias. Matrices that write to the residual stream are zero at first (std 0)."""
    rounding = None

    def __init__(self, inputs, outputs, std):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * std)

    def forward(self, x):
        return functional.linear(x, _seen(self.weight, self.rounding))


class Embedding(nn.Module):
    """The embedding table, which is also the output head."""
    rounding = None

    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(config.vocab_size, config.hidden_size) * 0.08)

    def forward(self, tokens):
        return functional.embedding(tokens, _seen(self.weight, self.rounding))

    def logits(self, x):
        return functional.linear(x, _seen(self.weight, self.rounding))


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def _rotate(x, cos, sin):
    """Rotates elements in half-split order: element i together with element i + head_dim / 2."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        query_size = config.num_attention_heads * config.head_dim
        key_size = config.num_key_value_heads * config.head_dim
        std = config.hidden_size ** -0.5
        self.q_proj = Linear(config.hidden_size, query_size, std)
        self.k_proj = Linear(config.hidden_size, key_size, std)
        self.v_proj = Linear(config.hidden_size, key_size, std)
        self.o_proj = Linear(query_size, config.hidden_size, std=0.0)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        config = self.config
        group = config.num_attention_heads // config.num_key_value_heads

        def heads(projected, count):
            return projected.view(batch, length, count, config.head_dim).transpose(1, 2)

        query = _rotate(heads(self.q_proj(x), config.num_attention_heads), cos, sin)
        key = _rotate(heads(self.k_proj(x), config.num_key_value_heads), cos, sin).repeat_interleave(group, dim=1)
        value = heads(self.v_proj(x), config.num_key_value_heads).repeat_interleave(group, dim=1)
        scores = query @ key.transpose(-1, -2) * config.head_dim ** -0.5 + mask
        mixed = (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(batch, length, -1)
        return self.o_proj(mixed)


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        std = config.hidden_size ** -0.5
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, std)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, std)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, std=0.0)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = FeedForward(config)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = Embedding(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        half = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        angles = torch.outer(torch.arange(config.max_position_embeddings).float(), config.rope_theta ** -half)
        angles = torch.cat([angles, angles], dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def set_rounding(self, rounding):
        """Makes every matrix, the embedding table too, behave as if it was stored rounded (None: not rounded)."""
        for module in self.modules():
            if isinstance(module, (Linear, Embedding)):
                module.rounding = rounding

    def forward(self, tokens):
        """tokens [batch, length] -> logits [batch, length, vocab_size]"""
        length = tokens.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, self.cos[:length], self.sin[:length], mask)
        return self.model.embed_tokens.logits(self.model.norm(x))

    @torch.no_grad()
    def answer(self, tokens, stop_token, limit_tokens=120):
        """Continues a list of tokens greedily and returns the new ones without the stop token."""
        tokens = list(tokens)
        start = len(tokens)
        while len(tokens) < min(start + limit_tokens, self.config.max_position_embeddings):
            token = int(self(torch.tensor([tokens]))[0, -1].argmax())
            if token == stop_token:
                break
            tokens.append(token)
        return tokens[start:]
