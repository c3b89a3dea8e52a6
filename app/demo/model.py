"""The BitNet b1.58 graph in PyTorch, trained with the straight-through recipe.

The forward pass computes as the engine does: ternary weights with one scale for each matrix, int8 activations per
token (s = 127 / max(|x|, 1e-5), round half to even), RMSNorm, RoPE in half-split pairs, grouped KV heads,
ReLU-squared gate, sub-norms before the two output projections, output head tied to the embedding. With exact=True
everything except the integer products is float32, for comparison with the engine's logits. Training multiplies in
bfloat16, in which int8 values and ternary weights are exact, where the processor has instructions for it.
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

# Without instructions for it, products in bfloat16 take three times as long as in float32.
PRODUCTS = torch.bfloat16 if torch.cuda.is_available() or torch.cpu._is_avx512_bf16_supported() else torch.float32
QUERIES = 128  # in a group whose attention is computed together
INTEGERS = PRODUCTS == torch.float32 and torch.cpu._is_vnni_supported()


@dataclass
class Shape:
    vocab: int
    embd: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 640
    context: int = 2048
    eps: float = 1e-5
    rope_base: float = 10000.0

    @property
    def head_dim(self):
        return self.embd // self.heads


def ternary(w):
    """-> (weights -1, 0, +1 as float, scale). The scale is the mean magnitude."""
    scale = w.abs().mean().clamp(min=1e-5)
    return (w / scale).round().clamp(-1, 1), scale


def quantise(x):
    s = 127.0 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
    return (x * s).round().clamp(-128, 127), s


class TernaryProduct(torch.autograd.Function):
    """Forward: int8 times ternary. Backward: the gradient without rounding (straight-through)."""

    @staticmethod
    def forward(ctx, x, w, exact):
        q, s = quantise(x)
        t, scale = ternary(w)
        dtype = torch.float32 if exact else PRODUCTS
        qd, td = q.to(dtype), t.to(dtype)
        ctx.save_for_backward(qd, td, s, scale)
        y = F.linear(qd, td)
        return y.float() * (scale / s)

    @staticmethod
    def backward(ctx, g):
        q, t, s, scale = ctx.saved_tensors
        gd = g.to(q.dtype)
        gx = (gd @ t).float() * scale
        gw = (g / s).to(q.dtype).flatten(0, -2).t() @ q.flatten(0, -2)
        return gx, gw.float(), None


class IntegerProduct(torch.autograd.Function):
    """
    The same in int8, without differences in the forward pass. The gradient of x is rounded to int8 for each token,
    that of w is not (Wortsman and others, "Stable and low-precision training", 2023). For processors that have
    instructions for int8 and none for bfloat16.
    """

    @staticmethod
    def forward(ctx, x, w):
        q, s = quantise(x)
        t, scale = ternary(w)
        q, t = q.to(torch.int8), t.to(torch.int8)
        ctx.save_for_backward(q, t, s, scale)
        y = torch._int_mm(q.flatten(0, -2), t.t()).view(*x.shape[:-1], -1)
        return y.float() * (scale / s)

    @staticmethod
    def backward(ctx, g):
        q, t, s, scale = ctx.saved_tensors
        r = 127.0 / g.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        gq = (g * r).round().to(torch.int8)
        gx = torch._int_mm(gq.flatten(0, -2), t).view(q.shape).float() * (scale / r)
        gw = (g / s).flatten(0, -2).t() @ q.flatten(0, -2).float()
        return gx, gw


class BitLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * 0.02)

    def forward(self, x, exact):
        if INTEGERS and not exact:
            return IntegerProduct.apply(x, self.weight)
        return TernaryProduct.apply(x, self.weight, exact)


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    """x (batch, heads, tokens, head_dim); pairs (i, i + head_dim / 2)."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v, mask):
    """In single steps, which the compiler fuses: twice as fast on a CPU as scaled_dot_product_attention."""
    scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    return (scores.masked_fill(~mask, -3e4).softmax(-1).to(PRODUCTS) @ v).float()


class Layer(nn.Module):
    def __init__(self, p):
        super().__init__()
        d, kv = p.embd, p.kv_heads * p.head_dim
        self.p = p
        self.attn_norm, self.attn_sub_norm = Norm(d, p.eps), Norm(d, p.eps)
        self.ffn_norm, self.ffn_sub_norm = Norm(d, p.eps), Norm(p.ffn, p.eps)
        self.attn_q, self.attn_k, self.attn_v = BitLinear(d, d), BitLinear(d, kv), BitLinear(d, kv)
        self.attn_output = BitLinear(d, d)
        self.ffn_gate, self.ffn_up, self.ffn_down = BitLinear(d, p.ffn), BitLinear(d, p.ffn), BitLinear(p.ffn, d)

    def forward(self, h, cos, sin, mask, exact):
        p = self.p
        n_batch, n_tokens, _ = h.shape
        split = lambda x, n: x.view(n_batch, n_tokens, n, p.head_dim).transpose(1, 2)
        a = self.attn_norm(h)
        q = rotate(split(self.attn_q(a, exact), p.heads), cos, sin)
        k = rotate(split(self.attn_k(a, exact), p.kv_heads), cos, sin)
        v = split(self.attn_v(a, exact), p.kv_heads)
        if exact:  # the engine stores K and V in half precision
            k, v = k.half().float(), v.half().float()
        group = p.heads // p.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if exact:
            o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:  # in groups of queries, which attend to no key after the group
            q, k, v = q.to(PRODUCTS), k.to(PRODUCTS), v.to(PRODUCTS)
            o = torch.cat([attention(q[:, :, at:at + QUERIES], k[:, :, :at + QUERIES], v[:, :, :at + QUERIES],
                                     mask[:, :, at:at + QUERIES, :at + QUERIES])
                           for at in range(0, n_tokens, QUERIES)], 2)
        o = o.transpose(1, 2).reshape(n_batch, n_tokens, p.embd)
        h = h + self.attn_output(self.attn_sub_norm(o), exact)
        b = self.ffn_norm(h)
        m = F.relu(self.ffn_gate(b, exact)).square() * self.ffn_up(b, exact)
        return h + self.ffn_down(self.ffn_sub_norm(m), exact)


class Model(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.token_embd = nn.Embedding(p.vocab, p.embd)
        nn.init.normal_(self.token_embd.weight, std=0.02)
        self.blk = nn.ModuleList(Layer(p) for _ in range(p.layers))
        self.output_norm = Norm(p.embd, p.eps)

    def embedding(self):
        """The embedding rounded to F16 as in the file. The gradient ignores the rounding."""
        w = self.token_embd.weight
        return w + (w.half().float() - w).detach()

    def hidden(self, ids, positions, mask, exact=False):
        """ids, positions (batch, tokens); mask (batch, 1, tokens, tokens), True where a token may attend."""
        p = self.p
        freq = p.rope_base ** (-torch.arange(0, p.head_dim, 2, dtype=torch.float64) / p.head_dim)
        angle = positions[:, None, :, None].double() * freq
        cos, sin = angle.cos().float(), angle.sin().float()
        h = F.embedding(ids, self.embedding())
        for layer in self.blk:
            h = layer(h, cos, sin, mask, exact)
        return self.output_norm(h)

    def logits(self, hidden):
        return F.linear(hidden, self.embedding())
