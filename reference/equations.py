"""The model of docs/arithmetic.md written as equations on whole tensors, in PyTorch: float32 and float64.

It shares nothing with the engine but the equations: whole matrices instead of rows in a given order, one causal mask instead of a cache, PyTorch's
own elementary functions. In float64 it is the truth that errors are measured against. With `noise` every operation's result is moved by the
most that rounding to float32 may move it, with drawn signs: what the logits then move by is the bound that docs/testing.md explains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from checkpoint import Quantized, Shape, Tensors

UNIT = 2.0**-24  # half an ulp of 1 in float32


@dataclass(frozen=True)
class Matrix:
    """Weights ready to multiply: rows, or quantized rows with their scales."""

    weight: torch.Tensor  # [rows, columns]; for Q8_0 the integers
    scales: torch.Tensor | None = None  # [rows, groups]
    group_size: int = 0

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Those rows multiplied out."""
        picked = self.weight[index]
        return picked if self.scales is None else (groups_of(picked, self.group_size) * self.scales[index][..., None]).flatten(-2)


def groups_of(x: torch.Tensor, group_size: int) -> torch.Tensor:
    return x.reshape(*x.shape[:-1], x.shape[-1] // group_size, group_size)


def round_half_away(x: torch.Tensor) -> torch.Tensor:
    return torch.sign(x) * torch.floor(torch.abs(x) + 0.5)


def quantize(x: torch.Tensor, group_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Activations [..., columns] as integers and the scale of each group."""
    groups = groups_of(x, group_size)
    scales = groups.abs().amax(-1) / 127.0
    safe = torch.where(scales == 0, torch.ones_like(scales), scales)
    return round_half_away(groups / safe[..., None]), scales


class Model:
    """Weights in one precision. exact_activations: Q8_0 weights, but activations that are not quantized."""

    def __init__(self, shape: Shape, weights: Tensors, dtype: torch.dtype, *, exact_activations: bool = False) -> None:
        self.shape, self.dtype, self.exact_activations = shape, dtype, exact_activations
        self.weights = {name: [self._matrix(value) for value in values] for name, values in weights.items()}
        self.noise: torch.Generator | None = None
        self.activation_steps = False  # whether noise includes what quantizing the activations may do

    def _matrix(self, value: np.ndarray | Quantized) -> Matrix:
        if isinstance(value, Quantized):
            weight = torch.tensor(value.q).to(self.dtype)
            return Matrix(weight, torch.tensor(value.scales).to(self.dtype), value.group_size)
        return Matrix(torch.tensor(value).to(self.dtype))

    def _moved(self, value: torch.Tensor, most: torch.Tensor | float) -> torch.Tensor:
        """value, or value moved by `most` up or down."""
        if self.noise is None:
            return value
        signs = torch.randint(0, 2, value.shape, generator=self.noise).to(self.dtype) * 2 - 1
        return value + signs * most

    def _multiply(self, name: str, layer: int, x: torch.Tensor) -> torch.Tensor:
        """[positions, rows] = matrix * each of x [positions, columns]."""
        matrix = self.weights[name][layer]
        if matrix.scales is None:
            return self._moved_product(x, matrix.weight)
        if self.exact_activations:
            if self.activation_steps:
                scales = groups_of(x, matrix.group_size).abs().amax(-1) / 127.0
                x = self._moved(x, scales.repeat_interleave(matrix.group_size, dim=-1) / 2)
            return self._moved_product(x, (groups_of(matrix.weight, matrix.group_size) * matrix.scales[..., None]).flatten(-2))
        q, scales = quantize(x, matrix.group_size)
        return self._quantized_product(matrix, q, scales)

    def _moved_product(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = x @ weight.T
        if self.noise is None:
            return out
        return self._moved(out, weight.shape[1] * UNIT * (x.abs() @ weight.abs().T))

    def _quantized_product(self, matrix: Matrix, q: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        weight = groups_of(matrix.weight, matrix.group_size)
        out = torch.zeros(q.shape[0], weight.shape[0], dtype=self.dtype)
        most = torch.zeros_like(out)
        for group in range(weight.shape[1]):
            # The products of a group are integers below 2^24: exact in float32 too.
            term = (q[:, group] @ weight[:, group].T) * matrix.scales[:, group] * scales[:, group, None]
            out = out + term
            most = most + term.abs()
        return self._moved(out, (weight.shape[1] + 3) * UNIT * most)

    def _norm(self, name: str, layer: int, x: torch.Tensor) -> torch.Tensor:
        weight = self.weights[name][layer].weight[0]
        out = weight * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5))
        return self._moved(out, (x.shape[-1] / 2 + 6) * UNIT * out.abs())

    def _rotate(self, x: torch.Tensor) -> torch.Tensor:
        """Pairs (2 i, 2 i + 1) of every head turned by position * 10000^(-2 i / head_size). x: [positions, heads, head_size]."""
        half = self.shape.head_size // 2
        exponents = torch.arange(half, dtype=self.dtype) * 2 / self.shape.head_size
        angles = torch.arange(x.shape[0], dtype=self.dtype)[:, None] * (1.0 / torch.pow(torch.tensor(10000.0, dtype=self.dtype), exponents))
        # An exponent rounded by 1 UNIT moves the frequency by ln 10000 < 10 of them; 4 more operations.
        angles = self._moved(angles, 14 * UNIT * angles.abs())[:, None, :]
        cosines, sines = torch.cos(angles), torch.sin(angles)
        first, second = x[..., 0::2], x[..., 1::2]
        out = torch.empty_like(x)
        out[..., 0::2] = first * cosines - second * sines
        out[..., 1::2] = first * sines + second * cosines
        return self._moved(out, 4 * UNIT * (first.abs() + second.abs()).repeat_interleave(2, dim=-1))

    def _attention(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        shape, count = self.shape, x.shape[0]
        q = self._rotate(self._multiply("wq", layer, x).reshape(count, shape.n_heads, shape.head_size))
        k = self._rotate(self._multiply("wk", layer, x).reshape(count, shape.n_kv_heads, shape.head_size))
        v = self._multiply("wv", layer, x).reshape(count, shape.n_kv_heads, shape.head_size)
        # Query head h reads key/value head h / (n_heads / n_kv_heads).
        each = shape.n_heads // shape.n_kv_heads
        k, v = k.repeat_interleave(each, dim=1), v.repeat_interleave(each, dim=1)
        root = shape.head_size**0.5
        scores = torch.einsum("qhe,khe->hqk", q, k) / root
        if self.noise is not None:
            most = torch.einsum("qhe,khe->hqk", q.abs(), k.abs()) / root
            scores = self._moved(scores, (shape.head_size + 2) * UNIT * most)
        future = torch.triu(torch.ones(count, count, dtype=torch.bool), diagonal=1)
        shares = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        # exp of a difference d that was rounded; then a sum of up to `count` terms.
        spread = (scores.amax(-1, keepdim=True) - scores).clamp(0, 100)
        shares = self._moved(shares, (count + 4 + spread) * UNIT * shares)
        out = torch.einsum("hqk,khe->qhe", shares, v)
        if self.noise is not None:
            out = self._moved(out, count * UNIT * torch.einsum("hqk,khe->qhe", shares, v.abs()))
        return self._multiply("wo", layer, out.reshape(count, shape.dim))

    def _feed_forward(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        gate = self._multiply("w1", layer, x)
        hidden = gate * torch.sigmoid(gate) * self._multiply("w3", layer, x)
        return self._multiply("w2", layer, self._moved(hidden, (8 + gate.abs().clamp(0, 100)) * UNIT * hidden.abs()))

    def logits(self, tokens: list[int], noise_seed: int | None = None, activation_steps: bool = False) -> np.ndarray:
        """[positions, vocab_size] of the tokens fed from position 0."""
        self.activation_steps = activation_steps
        self.noise = None if noise_seed is None else torch.Generator().manual_seed(noise_seed)
        with torch.no_grad():
            x = self.weights["embedding"][0].rows(torch.tensor(tokens))
            for layer in range(self.shape.n_layers):
                for part, norm in ((self._attention, "attention_norm"), (self._feed_forward, "ffn_norm")):
                    x = x + part(layer, self._norm(norm, layer, x))
                    x = self._moved(x, UNIT * x.abs())
            x = self._norm("final_norm", 0, x)
            out = self._multiply("embedding" if self.shape.shared else "classifier", 0, x)
        return out.numpy()
