#!/usr/bin/env python3
"""Trains the demo model, from random weights or from those of a model, and writes it as a GGUF file.

usage: train.py [--work DIR] [--out demo.gguf] [--start FILE.gguf|DIR] [--tokens N | --seconds N] [--threads N]
                [--device cpu|cuda] [--stop-after SECONDS]

Needs Python 3.10 or newer with torch, numpy and tokenizers. The vocabulary and a checkpoint every few minutes are saved
in the work directory; the same arguments continue the training. All random numbers depend on --seed.
"""
import argparse
import json
import os
import random
import time
from dataclasses import asdict

import numpy as np
import torch
import torch.nn.functional as F

import corpus
import gguf_file as out
from model import Model, Shape, ternary
from rows import CONTEXT, SEQUENCE, Rows
from vocabulary import learn, read_vocabulary

TEMPLATE = ("{% set loop_messages = messages %}{% for message in loop_messages %}"
            "{% set content = message['role'] | capitalize + ': '"
            "+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
            "{% set content = bos_token + content %}{% endif %}"
            "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}")
# Of a training from random weights:
EASY_SHARE = 1 / 6  # at its beginning, with the easier mixture; more if that many rows were made ahead
ANSWERS_SHARE = .6  # at its end, in which it learns the answers only


def log(work, line):
    print(line, flush=True)
    with open(os.path.join(work, "log.txt"), "a", encoding="utf-8") as f:
        f.write(line + "\n")


def vocab_path(work):
    return os.path.join(work, "vocab.json")


def make_vocabulary(work, n_vocab, seed, start=None):
    """The vocabulary of the work directory, else that of `start` if it has n_vocab tokens, else a new one."""
    path = vocab_path(work)
    if not os.path.exists(path):
        found = vocabulary_of(start) if start else None
        if not found or len(found["tokens"]) != n_vocab:
            found = new_vocabulary(n_vocab, seed)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(found, f)
    return read_vocabulary(path)


def vocabulary_of(start):
    """The tokens and merges of a GGUF file or of a work directory"""
    if os.path.isdir(start):
        with open(vocab_path(start), encoding="utf-8") as f:
            return json.load(f)
    meta, _ = out.read(start)
    return {"tokens": meta["tokenizer.ggml.tokens"], "merges": meta["tokenizer.ggml.merges"]}


def shape_of(path):
    """The shape of a model in a GGUF file of export()."""
    meta, _ = out.read(path)
    keys = {"vocab": "vocab_size", "embd": "embedding_length", "layers": "block_count", "ffn": "feed_forward_length",
            "heads": "attention.head_count", "kv_heads": "attention.head_count_kv", "context": "context_length"}
    return Shape(**{member: meta["bitnet-b1.58." + key] for member, key in keys.items()})


def new_vocabulary(n_vocab, seed):
    maker, texts = corpus.Maker("train", random.Random(seed)), []
    for _ in range(30000):
        for user, answer, kind in maker.conversation():
            if kind != "word":  # words that are spelled must stay sequences of letters
                texts += ["User: " + user, answer]
    tokens, merges = learn(texts, n_vocab)
    return {"tokens": tokens, "merges": merges}


def state_path(work):
    return os.path.join(work, "state.pt")


def save_state(work, state):
    """Replaces the checkpoint only when the new one is complete."""
    torch.save(state, state_path(work) + ".new")
    os.replace(state_path(work) + ".new", state_path(work))


def load_state(work, device="cpu"):
    """The checkpoint of a work directory, or None"""
    path = state_path(work)
    return torch.load(path, map_location=device, weights_only=True) if os.path.exists(path) else None


def batch_of(rows, answers_only, device):
    """
    rows: one batch of Rows.batches() -> the arguments of loss_of(). The places of the targets are found here and not on
    a GPU, because the program would have to wait there for their number.
    """
    ids, parts, weights = rows["ids"].astype(np.int64), rows["parts"], rows["weights"].astype(np.float32)
    is_first = np.ones(parts.shape, bool)
    is_first[:, 1:] = parts[:, 1:] != parts[:, :-1]
    first = np.maximum.accumulate(np.where(is_first, np.arange(SEQUENCE, dtype=np.int32), 0), axis=1)
    weights[is_first] = 0  # the first id of a conversation follows nothing
    if answers_only:
        weights[weights != 1] = 0
    at = np.flatnonzero(weights)
    arrays = ids, rows["positions"].astype(np.int64), first, at - 1, ids.reshape(-1)[at], weights.reshape(-1)[at]
    tensors = map(torch.from_numpy, arrays)
    if device == "cpu":
        return tuple(tensors)
    return tuple(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors)


def loss_of(model, ids, positions, first, before, targets, weights):
    """
    Weighted mean over the targets. `before` are the places of the ids before them in the flattened batch. The output
    head is computed for these only.
    """
    hidden = model.hidden(ids, positions, first).flatten(0, 1).index_select(0, before)
    losses = F.cross_entropy(model.logits(hidden), targets, reduction="none")
    return (losses * weights).sum() / weights.sum()


def rate(step, share):
    """Fraction of the run's peak rate: 60 steps of warm-up, constant for a quarter, then linear decay to 1/50."""
    return min(1.0, (step + 1) / 60, 0.02 + 0.98 * (1 - share) / .75)


class Muon:
    """
    Orthogonalised momentum (Keller Jordan's Muon, with its constants). torch.optim.Muon multiplies single matrices in
    bfloat16, which took a third of a step on a processor without instructions for it. This one multiplies all
    matrices of a shape together in float32.
    """

    def __init__(self, parameters, lr):
        self.param_groups = [{"lr": lr}]
        shapes = sorted({p.shape for p in parameters})
        self.same = [[p for p in parameters if p.shape == shape] for shape in shapes]
        self.momentum = [torch.zeros(len(same), *same[0].shape, device=same[0].device) for same in self.same]

    @torch.no_grad()
    def step(self):
        for same, momentum in zip(self.same, self.momentum):
            gradient = torch.stack([p.grad for p in same])
            momentum.lerp_(gradient, 0.05)
            update = gradient.lerp_(momentum, 0.95)
            tall = update.shape[1] > update.shape[2]
            x = update.transpose(1, 2) if tall else update
            x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
            for _ in range(5):
                products = x @ x.transpose(1, 2)  # the next line: 3.4445 x + (-4.775 products + 2.0315 products^2) x
                x = torch.baddbmm(x, torch.baddbmm(products, products, products, beta=-4.7750, alpha=2.0315), x,
                                  beta=3.4445)
            scale = max(1, update.shape[1] / update.shape[2]) ** 0.5
            changes = (x.transpose(1, 2) if tall else x).unbind()
            torch._foreach_add_(same, changes, alpha=-self.param_groups[0]["lr"] * scale)

    def state_dict(self):
        return self.momentum

    def load_state_dict(self, momentum):
        self.momentum = [m.to(old.device) for m, old in zip(momentum, self.momentum)]


class Optimisers:
    """Muon for the ternary matrices, AdamW for the table and the norms."""

    def __init__(self, model, matrix_rate, other_rate):
        matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embd" not in n]
        others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embd" in n]
        self.all = [Muon(matrices, matrix_rate),
                    torch.optim.AdamW(others, lr=other_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)]
        self.peaks = [matrix_rate, other_rate]

    def step(self, share):
        for one, peak in zip(self.all, self.peaks):
            for group in one.param_groups:
                group["lr"] = peak * share
            one.step()

    def state(self):
        return [one.state_dict() for one in self.all]

    def load(self, states):
        for one, state in zip(self.all, states):
            one.load_state_dict(state)


def spread(n_layers, n_old):
    """-> {layer: old layer}: where the layers of a smaller model go. The other layers are new."""
    return {(2 * old + 1) * n_layers // (2 * n_old): old for old in range(n_old)}


def start_from(model, path, vocab):
    """
    Replaces random weights by those of a finished model with at most as many layers of the same shape. New layers
    stay random, but their output projections are so small that at first they change nothing. The vocabularies may
    differ: a token that only the new one has gets the mean embedding of the old tokens that begin with it. If there are
    none, it gets that of old token 0.
    """
    meta, tensors = out.read(path)
    old = meta["tokenizer.ggml.tokens"]
    rows = {token: i for i, token in enumerate(old)}
    n_layers, n_old = model.p.layers, meta["bitnet-b1.58.block_count"]
    if n_old > n_layers:
        raise SystemExit(f"{path} has {n_old} layers, more than {n_layers}")
    places = spread(n_layers, n_old)
    with torch.no_grad():
        for name, param in model.named_parameters():
            if name.startswith("blk."):
                layer, rest = name.removeprefix("blk.").split(".", 1)
                if int(layer) not in places:
                    if rest in ("attn_output.weight", "ffn_down.weight"):
                        param.mul_(1e-3)
                    continue
                name = f"blk.{places[int(layer)]}.{rest}"
            value = tensors[name]
            if isinstance(value, tuple):  # such that ternary() finds the same codes and the same scale
                codes, scale = value
                value = codes * scale / np.abs(codes).mean()
            elif name.startswith("token_embd"):
                value = np.stack([value[rows[token]] if token in rows else
                                  value[[i for i, t in enumerate(old) if t.startswith(token)] or [0]].mean(0)
                                  for token in vocab.tokens])
            param.copy_(torch.from_numpy(np.ascontiguousarray(value)))


class Mean:
    """The mean of the weights after each step of the last part of a training. It is better than the last weights."""

    def __init__(self):
        self.weights, self.n = None, 0

    def add(self, model):
        self.n += 1
        if self.weights is None:
            self.weights = {name: w.detach().clone() for name, w in model.named_parameters()}
        new = dict(model.named_parameters())
        torch._foreach_lerp_(list(self.weights.values()), [new[name].detach() for name in self.weights], 1 / self.n)

    def state(self):
        return {"weights": self.weights, "n": self.n}

    def load(self, state):
        self.weights, self.n = state["weights"], state["n"]


def begin(a, model, optimiser, mean, vocab):
    """Loads the checkpoint of the work directory, else the start. -> (steps done, seconds that they took)"""
    state = load_state(a.work, a.device)
    if state:
        model.load_state_dict(state["model"])
        optimiser.load(state["optimiser"])
        mean.load(state["mean"])
        return state["step"], state["seconds"]
    if a.start and os.path.isdir(a.start):
        state = load_state(a.start, a.device)
        if not state:
            raise SystemExit(f"{a.start} has no checkpoint")
        model.load_state_dict(state["model"])
        optimiser.load(state["optimiser"])
    elif a.start:
        start_from(model, a.start, vocab)
    return 0, 0


def train(a, vocab, rows):
    """
    A training from random weights begins with the easier mixture alone, and with the users' text at a small weight. One
    that continues a model does neither. -> the model, whether the training is finished
    """
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)  # tiny attention weights: without this the attention takes four times as long
    torch.backends.cuda.matmul.allow_tf32 = True  # enough for the optimiser and the head
    shape = Shape(vocab=len(vocab.tokens), embd=a.embd, layers=a.layers, heads=a.heads, kv_heads=a.kv_heads, ffn=a.ffn,
                  context=CONTEXT)
    model = Model(shape).to(a.device)
    if a.compile:  # each layer by itself: all have the same code, which is compiled once
        for layer in model.blk:
            layer.compile(dynamic=False)
    optimiser, mean = Optimisers(model, a.matrix_rate, a.rate), Mean()
    tokens_a_step = a.batch * SEQUENCE
    step, seconds_before = begin(a, model, optimiser, mean, vocab)
    log(a.work, f"{sum(p.numel() for p in model.parameters())} parameters, step {step}")
    began = saved = shown = time.time()

    def share_done(at):
        """The part of the training that is done at this step; with --seconds estimated, if the step is a later one."""
        if a.seconds:
            return (time.time() - began + seconds_before) / a.seconds * max(1, at / max(1, step))
        return at * tokens_a_step / a.tokens

    def is_hard(at):
        if not a.start and share_done(at) < EASY_SHARE:
            return False
        return random.Random(f"{a.seed} mixture {at}").random() >= a.easy

    batches, losses, share = rows.batches(step, is_hard), [], share_done(step)
    while share < 1:
        model.zero_grad(set_to_none=True)
        answers_only = bool(a.start) or share >= 1 - ANSWERS_SHARE
        loss = loss_of(model, *batch_of(next(batches), answers_only, a.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step(rate(step, share))
        losses.append(loss.detach())
        step += 1
        now, share = time.time(), share_done(step)
        if share > 1 - a.mean:
            mean.add(model)
        if step % 20 == 0:
            log(a.work, f"step {step} loss {torch.stack(losses).mean():.4f} rate {a.rate * rate(step, share):.2e} "
                        f"{len(losses) * tokens_a_step / (now - shown):.0f} tokens/s {now - began:.0f} s")
            losses, shown = [], now
        stops = share >= 1 or a.stop_after and now - began > a.stop_after
        if stops or now - saved > a.save_every:
            if share >= 1 and mean.n:
                model.load_state_dict(mean.weights)
            save_state(a.work, {"model": model.state_dict(), "optimiser": optimiser.state(), "step": step,
                                "seconds": now - began + seconds_before, "mean": mean.state(), "shape": asdict(shape)})
            saved = time.time()
        if stops:
            break
    return model.cpu(), share >= 1


def export(path, model, vocab):
    p, arch = model.p, "bitnet-b1.58"
    key = lambda name: f"{arch}.{name}"
    n = len(vocab.tokens)
    meta = [out.entry("general.architecture", out.STR, arch), out.entry("general.name", out.STR, "bitnet-chat demo"),
            out.entry("general.license", out.STR, "MIT"),
            out.entry(key("vocab_size"), out.U32, n), out.entry(key("context_length"), out.U32, p.context),
            out.entry(key("embedding_length"), out.U32, p.embd), out.entry(key("block_count"), out.U32, p.layers),
            out.entry(key("feed_forward_length"), out.U32, p.ffn),
            out.entry(key("attention.head_count"), out.U32, p.heads),
            out.entry(key("attention.head_count_kv"), out.U32, p.kv_heads),
            out.entry(key("rope.dimension_count"), out.U32, p.head_dim),
            out.entry(key("rope.freq_base"), out.F32, p.rope_base),
            out.entry(key("attention.layer_norm_rms_epsilon"), out.F32, p.eps),
            out.entry("general.sampling.temp", out.F32, 0.0),
            out.entry("tokenizer.ggml.model", out.STR, "gpt2"), out.entry("tokenizer.ggml.pre", out.STR, "llama-bpe"),
            out.entry("tokenizer.ggml.tokens", out.ARR, vocab.tokens, out.STR),
            out.entry("tokenizer.ggml.token_type", out.ARR, [1] * (n - 3) + [3] * 3, out.I32),
            out.entry("tokenizer.ggml.merges", out.ARR, vocab.merges, out.STR),
            out.entry("tokenizer.ggml.bos_token_id", out.U32, vocab.bos),
            out.entry("tokenizer.ggml.eos_token_id", out.U32, vocab.eos),
            out.entry("tokenizer.ggml.eot_token_id", out.U32, vocab.eot),
            out.entry("tokenizer.ggml.add_bos_token", out.BOOL, True),
            out.entry("tokenizer.chat_template", out.STR, TEMPLATE)]
    tensors = []
    for name, param in model.named_parameters():
        w = param.detach()
        if w.ndim == 1:
            tensors.append((name, tuple(w.shape), "f32", w.numpy().astype("<f4").tobytes()))
        elif name.startswith("token_embd"):
            tensors.append((name, tuple(w.shape), "f16", w.numpy().astype("<f2").tobytes()))
        else:
            t, scale = ternary(w)
            tensors.append((name, tuple(w.shape), "i2_s", out.i2s(t.numpy().astype(np.int8), float(scale))))
    out.write(path, meta, tensors)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--work", default="demo-work")
    ap.add_argument("--out", default="demo.gguf")
    ap.add_argument("--start", help="what the training starts with instead of random weights: a GGUF file of this "
                                    "trainer, or the work directory of a finished training with its optimiser")
    ap.add_argument("--tokens", type=int, default=66_000_000, help="length of the training")
    ap.add_argument("--seconds", type=float, default=0,
                    help="length of the training instead of --tokens, with the time for compiling the graph")
    ap.add_argument("--batch", type=int, default=8, help="rows a step")
    ap.add_argument("--rate", type=float, default=3e-3, help="peak learning rate of the table and the norms")
    ap.add_argument("--matrix-rate", type=float, default=0.02, help="peak learning rate of the matrices")
    ap.add_argument("--easy", type=float, default=.25,
                    help="share of the rows with the easier mixture, which is nearer to what users say")
    ap.add_argument("--mean", type=float, default=.15, help="share of the steps whose weights are averaged at the end")
    for name in "embd", "layers", "heads", "kv_heads", "ffn":
        ap.add_argument("--" + name.replace("_", "-"), type=int, default=getattr(Shape, name))
    ap.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True,
                    help="fuse the graph; needs a C++ compiler")
    ap.add_argument("--vocab", type=int, default=512, help="tokens; few, so that training shows each one often")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--save-every", type=float, default=300, help="seconds between checkpoints")
    ap.add_argument("--stop-after", type=float, default=0, help="seconds; 0: train to the end")
    a = ap.parse_args()
    os.makedirs(a.work, exist_ok=True)
    vocab = make_vocabulary(a.work, a.vocab, a.seed, a.start)
    with Rows(vocab_path(a.work), a.seed, a.batch, a.threads) as rows:
        model, finished = train(a, vocab, rows)
    export(a.out, model, vocab)
    print(a.out, os.path.getsize(a.out), "bytes", "" if finished else "(not finished)")


if __name__ == "__main__":
    main()
