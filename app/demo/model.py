"""The BitNet b1.58 graph in PyTorch, trained with the straight-through recipe.

The forward pass computes as the engine does: ternary weights with one scale for each matrix, int8 activations per
token (s = 127 / max(|x|, 1e-5), round half to even), RMSNorm, RoPE in half-split pairs, grouped KV heads,
ReLU-squared gate, sub-norms before the two output projections, output head tied to the embedding. With exact=True
the precision is that of the engine everywhere, for comparison with its logits. Training multiplies in bfloat16, in
which int8 values and ternary weights are exact, on a GPU or a processor with AMX, else in integers with the C files of
this folder.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

# On a processor without AMX the C files of this folder are faster than products in bfloat16.
PRODUCTS = torch.bfloat16 if torch.cuda.is_available() or torch.cpu._is_amx_tile_supported() else torch.float32


@dataclass
class Shape:
    vocab: int
    embd: int = 256
    layers: int = 12
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


def compile_kernels():
    """Compiles the C files of this folder for this processor. -> the library, None for a GPU or without AVX2"""
    if PRODUCTS != torch.float32 or not torch.cpu._is_avx2_supported():
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    # With -ftree-pre gcc 12 keeps the sums of a register tile in memory: 5.0 instead of 3.1 ms a product.
    flags = ["-O3", "-march=native", "-fopenmp", "-ffinite-math-only", "-fno-signed-zeros", "-fno-math-errno",
             "-fno-trapping-math", "-fno-tree-pre", "-shared", "-fPIC", "-I", os.path.join(here, "..", "..")]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.so")
        sources = [os.path.join(here, name) for name in ("ternary_product.c", "attention.c")]
        subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
        return ctypes.CDLL(path)


KERNELS = compile_kernels()


def address(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def arguments_of(kind, **values):
    """A struct of a C file. Tensors must be contiguous. Members without a value are 0 or NULL."""
    return kind(**{name: address(v) if isinstance(v, torch.Tensor) else v for name, v in values.items()})


def pointers(names):
    return [(name, ctypes.c_void_p) for name in names.split()]


def integers(names):
    return [(name, ctypes.c_int64) for name in names.split()]


class ProductArguments(ctypes.Structure):
    """struct product of ternary_product.c"""
    _fields_ = [*pointers("a scale w"), *integers("is_transposed"), *pointers("packed sums y"),
                *integers("rows outputs cols")]


class AttentionArguments(ctypes.Structure):
    """struct attention of attention.c"""
    _fields_ = [*pointers("q k v first o norm d_o dq dk dv"), *integers("batch heads kv_heads tokens"),
                ("scale", ctypes.c_float)]


def to_bytes(x, least):
    """x (rows, cols) -> its rounded values + 128 as bytes, and the scale of each row"""
    x = x.contiguous()
    a, s = torch.empty(x.shape, dtype=torch.uint8), torch.empty(len(x))
    KERNELS.quantise(address(x), address(a), address(s), ctypes.c_float(least), *map(ctypes.c_int64, x.shape))
    return a, s


def times(a, codes, is_transposed, scale):
    """a from to_bytes (rows, cols), codes (outputs, cols), or (cols, outputs) if transposed -> (rows, outputs)"""
    rows, cols = a.shape
    n = codes.numel() // cols
    scale, packed, sums = scale.contiguous(), torch.empty_like(codes), torch.empty(n, dtype=torch.int32)
    y = torch.empty(rows, n)
    KERNELS.product(ctypes.byref(arguments_of(
        ProductArguments, a=a, scale=scale, w=codes, is_transposed=is_transposed, packed=packed, sums=sums, y=y,
        rows=rows, outputs=n, cols=cols)))
    return y


@torch.library.custom_op("demo::bytes_forward", mutates_args=())
def bytes_forward(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor,
                                                                  torch.Tensor]:
    codes, scale = ternary(w)
    codes = codes.to(torch.int8)
    a, s = to_bytes(x, 1e-5)
    return times(a, codes, False, scale / s), a, s, codes, scale


@bytes_forward.register_fake
def _(x, w):
    return (x.new_empty(len(x), len(w)), x.new_empty(x.shape, dtype=torch.uint8), x.new_empty(len(x)),
            w.new_empty(w.shape, dtype=torch.int8), w.new_empty(()))


@torch.library.custom_op("demo::bytes_backward", mutates_args=())
def bytes_backward(g: torch.Tensor, a: torch.Tensor, s: torch.Tensor,
                   codes: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    gb, r = to_bytes(g, 1e-30)
    gx = times(gb, codes, True, scale / r)
    q = torch.empty(a.shape)
    KERNELS.restore(address(a), address(q), ctypes.c_int64(a.numel()))
    return gx, (g / s[:, None]).t() @ q


@bytes_backward.register_fake
def _(g, a, s, codes, scale):
    return g.new_empty(a.shape), g.new_empty(g.shape[1], a.shape[1])


class IntegerProduct(torch.autograd.Function):
    """
    The same as TernaryProduct, with integers (ternary_product.c). The forward pass gives the same result. The gradient
    of x is rounded to int8 for each token, that of w is not (Wortsman and others, "Stable and low-precision training",
    2023).
    """

    @staticmethod
    def forward(ctx, x, w):
        y, *saved = bytes_forward(x.flatten(0, -2), w)
        ctx.save_for_backward(*saved)
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, g):
        gx, gw = bytes_backward(g.flatten(0, -2), *ctx.saved_tensors)
        return gx.view(*g.shape[:-1], -1), gw


class BitLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * 0.02)

    def forward(self, x, exact):
        if KERNELS and not exact:
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


def attention_arguments(**tensors):
    batch, heads, tokens, dim = tensors["q"].shape
    return arguments_of(AttentionArguments, **tensors, batch=batch, heads=heads, kv_heads=tensors["k"].shape[1],
                        tokens=tokens, scale=dim ** -0.5)


@torch.library.custom_op("demo::attend", mutates_args=())
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    o, norm = torch.empty(q.shape), torch.empty(q.shape[:3])
    KERNELS.attend(ctypes.byref(attention_arguments(q=q, k=k, v=v, first=first, o=o, norm=norm)))
    return o, norm


@attend.register_fake
def _(q, k, v, first):
    return q.new_empty(q.shape), q.new_empty(q.shape[:3])


@torch.library.custom_op("demo::attend_backward", mutates_args=())
def attend_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor, o: torch.Tensor,
                    norm: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dq, dk, dv = torch.empty(q.shape), torch.zeros(k.shape), torch.zeros(v.shape)
    KERNELS.attend_backward(ctypes.byref(attention_arguments(q=q, k=k, v=v, first=first, o=o, norm=norm, d_o=g, dq=dq,
                                                             dk=dk, dv=dv)))
    return dq, dk, dv


@attend_backward.register_fake
def _(q, k, v, first, o, norm, g):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


class Attention(torch.autograd.Function):
    """attention.c: only the products that are needed, which takes half as long as the graph of torch.compile."""

    @staticmethod
    def forward(ctx, q, k, v, first):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        o, norm = attend(q, k, v, first)
        ctx.save_for_backward(q, k, v, first, o, norm)
        return o

    @staticmethod
    def backward(ctx, g):
        return *attend_backward(*ctx.saved_tensors, g.contiguous()), None


def masked_attention(q, k, v, first):
    """The same without attention.c, for any number of tokens."""
    at = torch.arange(q.shape[2], device=q.device)
    mask = (at >= first[:, None, :, None]) & (at <= at[:, None])
    group = q.shape[1] // k.shape[1]
    return F.scaled_dot_product_attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1),
                                          attn_mask=mask)


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

    def forward(self, h, cos, sin, first, exact):
        p = self.p
        n_batch, n_tokens, _ = h.shape
        split = lambda x, n: x.view(n_batch, n_tokens, n, p.head_dim).transpose(1, 2)
        a = self.attn_norm(h)
        q = rotate(split(self.attn_q(a, exact), p.heads), cos, sin)
        k = rotate(split(self.attn_k(a, exact), p.kv_heads), cos, sin)
        v = split(self.attn_v(a, exact), p.kv_heads)
        if exact:  # the engine stores K and V in half precision
            k, v = k.half().float(), v.half().float()
        if KERNELS and not exact:
            o = Attention.apply(q, k, v, first)
        elif exact:
            o = masked_attention(q, k, v, first)
        else:
            o = masked_attention(q.to(PRODUCTS), k.to(PRODUCTS), v.to(PRODUCTS), first).float()
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
        freq = p.rope_base ** (-torch.arange(0, p.head_dim, 2, dtype=torch.float64) / p.head_dim)
        angle = torch.arange(p.context, dtype=torch.float64)[:, None] * freq
        for name, table in ("cos", angle.cos()), ("sin", angle.sin()):  # (context, head_dim / 2), not trained
            self.register_buffer(name, table.float(), persistent=False)

    def embedding(self):
        """The embedding rounded to F16 as in the file. The gradient ignores the rounding."""
        w = self.token_embd.weight
        return w + (w.half().float() - w).detach()

    def hidden(self, ids, positions, first, exact=False):
        """ids, positions (batch, tokens); first (batch, tokens) int32: a token attends to first[token] up to itself."""
        cos, sin = (F.embedding(positions, table)[:, None] for table in (self.cos, self.sin))
        h = F.embedding(ids, self.embedding())
        for layer in self.blk:
            h = layer(h, cos, sin, first, exact)
        return self.output_norm(h)

    def logits(self, hidden):
        return F.linear(hidden, self.embedding())


def check_kernels():
    """Compares the C files with the graph that they replace. Exits with 1 if a result or a gradient differs."""
    if not KERNELS:
        sys.exit("model.py: no kernels in C on this machine")
    torch.manual_seed(1)
    first = torch.where(torch.arange(512) < 203, 0, 203).to(torch.int32)[None]
    cases = {"product": (IntegerProduct.apply, lambda x, w: TernaryProduct.apply(x, w, False), (7, 5, 256), (640, 256)),
             "attention": (lambda *a: Attention.apply(*a, first), lambda *a: masked_attention(*a, first),
                           (1, 4, 512, 64), (1, 2, 512, 64), (1, 2, 512, 64))}
    failed = False
    for name, (fast, plain, *shapes) in cases.items():
        inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
        results = []
        for function in (fast, plain):
            y = function(*inputs)
            torch.manual_seed(2)
            results.append([y.detach(), *torch.autograd.grad(y, inputs, torch.randn(y.shape))])
        errors = [float((a - b).norm() / b.norm()) for a, b in zip(*results)]
        failed |= max(errors) > 0.01  # the gradient of x is rounded to int8
        print(f"{name}: relative differences of the result and the gradients", *(f"{e:.1e}" for e in errors))
    sys.exit(failed)


if __name__ == "__main__":
    check_kernels()
