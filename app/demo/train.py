#!/usr/bin/env python3
"""Trains the demo model, from random weights or from those of a model, and writes it as a GGUF file.

usage: train.py [--work DIR] [--out demo.gguf] [--start FILE.gguf] [--tokens N] [--more-tokens N ...] [--threads N]
                [--device cpu|cuda] [--stop-after SECONDS]

Needs Python 3.10 or newer with torch, numpy and tokenizers. The stages are the vocabulary, the corpus as ids, and
the training. Each result is saved in the work directory and used again by the next run. Training writes a checkpoint
every few minutes, in files of at most 15 MiB; the same arguments continue it. All random numbers depend on --seed.
"""
import argparse
import glob
import io
import json
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import corpus
import gguf_file as out
from model import Model, Shape, ternary
from vocabulary import Vocabulary, learn

TEMPLATE = ("{% set loop_messages = messages %}{% for message in loop_messages %}"
            "{% set content = message['role'] | capitalize + ': '"
            "+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
            "{% set content = bos_token + content %}{% endif %}"
            "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}")
SYSTEMS = ["You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.", "Be kind.",
           "You are bitnet-chat."]
SEQUENCE = 512  # ids of a training row, which holds several conversations that do not attend to each other
WAITING = 48  # conversations to choose from when a row is filled
PART_BYTES = 15 << 20


def log(work, line):
    print(line, flush=True)
    with open(os.path.join(work, "log.txt"), "a", encoding="utf-8") as f:
        f.write(line + "\n")


def make_vocabulary(work, n_vocab, seed, start=None):
    """The vocabulary of the work directory, else that of the model `start` if it has n_vocab tokens, else a new one."""
    path = os.path.join(work, "vocab.json")
    meta = out.read(start)[0] if start else {}
    if not os.path.exists(path) and len(meta.get("tokenizer.ggml.tokens", [])) == n_vocab:
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"tokens": meta["tokenizer.ggml.tokens"], "merges": meta["tokenizer.ggml.merges"]}, f)
    if not os.path.exists(path):
        maker, texts = corpus.Maker("train", random.Random(seed)), []
        for _ in range(30000):
            for user, answer, kind in maker.conversation():
                if kind != "word":  # words that are spelled must stay sequences of letters
                    texts += ["User: " + user, answer]
        tokens, merges = learn(texts, n_vocab)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"tokens": tokens, "merges": merges}, f)
    with open(path, encoding="utf-8") as f:
        return Vocabulary(**json.load(f))


def stretched(ids, eot, rng):
    """
    Positions of a conversation's ids. Some conversations get gaps between turns and cover the whole context, so
    that rows of SEQUENCE ids also train attention over long distances.
    """
    gap, places = 0, []
    room = Shape.context - len(ids) if rng.random() < .3 else 0
    for token in ids:
        places.append(len(places) + gap)
        if token == eot and room > gap and rng.random() < .5:
            gap += int((room - gap) * rng.random() ** 2)
    return places


def conversations(vocab, maker, rng):
    """Yields (ids, weights, positions) of conversations, cut after SEQUENCE ids."""
    while True:
        turns = [(u, a, corpus.given_characters(a, kind)) for u, a, kind in maker().conversation()]
        system = rng.choice(SYSTEMS) if rng.random() < .1 else None
        ids, weights = (part[:SEQUENCE] for part in vocab.conversation(turns, system))
        yield ids, weights, stretched(ids, vocab.eot, rng)


def fill_row(talks, waiting):
    """
    -> conversations that fit into a row together: the one that has waited longest, then the longest that fits, until
    none fits.
    """
    row, room = [], SEQUENCE
    while True:
        while len(waiting) < WAITING:
            waiting.append(next(talks))
        fits = [talk for talk in waiting if len(talk[0]) <= room]
        if not fits:
            return row
        best = max(fits, key=lambda talk: len(talk[0])) if row else waiting[0]
        waiting.remove(best)
        row.append(best)
        room -= len(best[0])


def make_rows(path, vocab, n_tokens, seed, easy_share):
    """
    -> ids, weights, conversation numbers, positions: each (rows, SEQUENCE). The first part, easy_share of all, has
    the easier mixture, the rest the harder one.
    """
    if os.path.exists(path):
        return np.load(path)
    rng = random.Random(seed + 1)
    makers = corpus.Maker("train", rng), corpus.Maker("train", rng, hard=True, pieces=vocab.pieces())
    n_rows = n_tokens // SEQUENCE
    ids = np.full((n_rows, SEQUENCE), vocab.eos, np.uint16)
    weights = np.zeros((n_rows, SEQUENCE), np.float16)
    parts = np.full((n_rows, SEQUENCE), 255, np.uint8)
    positions = np.zeros((n_rows, SEQUENCE), np.uint16)
    done, waiting = 0, []
    talks = conversations(vocab, lambda: makers[done >= n_rows * easy_share], rng)
    while done < n_rows:
        at = 0
        for part, (one, weight, places) in enumerate(fill_row(talks, waiting)):
            here = slice(at, at + len(one))
            ids[done, here], weights[done, here], parts[done, here], positions[done, here] = one, weight, part, places
            at += len(one)
        done += 1
    np.savez(path, ids=ids, weights=weights, parts=parts, positions=positions)
    return np.load(path)


def save_parts(path, state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    data = buffer.getvalue()
    for i in range(0, len(data), PART_BYTES):
        with open(f"{path}.new{i // PART_BYTES:02d}", "wb") as f:
            f.write(data[i:i + PART_BYTES])
    for old in glob.glob(path + ".[0-9][0-9]"):
        os.remove(old)
    for new in sorted(glob.glob(path + ".new[0-9][0-9]")):
        os.rename(new, new.replace(".new", "."))


def load_parts(path):
    parts = sorted(glob.glob(path + ".[0-9][0-9]"))
    if not parts:
        return None
    data = b"".join(open(p, "rb").read() for p in parts)
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def path_of(work, name, run):
    """The path of a run's file, without its ending. Names of the first run have no number."""
    return os.path.join(work, name if run == 1 else f"{name}{run}")


def last_state(work):
    """The last checkpoint of the last run."""
    runs = [run for run in range(1, 10) if os.path.exists(path_of(work, "state", run) + ".00")]
    return load_parts(path_of(work, "state", runs[-1]))


def batch_of(rows, picks, device):
    take = lambda name, kind: torch.from_numpy(rows[name][picks].astype(kind)).to(device)
    ids, parts, positions = take("ids", np.int64), take("parts", np.int64), take("positions", np.int64)
    weights = take("weights", np.float32)
    at = torch.arange(SEQUENCE, dtype=torch.int32, device=device).expand(parts.shape)
    begins = F.pad(parts[:, 1:] != parts[:, :-1], (1, 0), value=True)
    first = torch.where(begins, at, 0).cummax(1).values
    weights = weights[:, 1:] * (parts[:, 1:] == parts[:, :-1])
    return ids, positions, first, weights


def loss_of(model, ids, positions, first, weights):
    """Weighted mean over the targets. The output head is computed for them only."""
    hidden = model.compiled(ids, positions, first)[:, :-1]
    wanted = weights > 0
    logits = model.logits(hidden[wanted])
    losses = F.cross_entropy(logits, ids[:, 1:][wanted], reduction="none")
    w = weights[wanted]
    return (losses * w).sum() / w.sum()


def rate(step, n_steps):
    """Fraction of the run's peak rate: warm-up, constant for a quarter, then linear decay to 1/50."""
    warm, fall = min(60, max(1, n_steps // 10)), max(1, n_steps * 3 // 4)
    return min(1.0, (step + 1) / warm, 0.02 + 0.98 * (n_steps - step) / fall)


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
            for p, change in zip(same, x.transpose(1, 2) if tall else x):
                p.add_(change, alpha=-self.param_groups[0]["lr"] * scale)

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


def train(a, vocab, run):
    """
    Run 1 trains from random weights, or from those of --start. Each later run continues with the result of the run
    before it, on other rows, with a lower peak rate. A run that does not begin with random weights has the harder
    mixture only and learns the answers only.
    -> the model, whether the run is finished
    """
    fresh = run == 1 and not a.start
    rows = make_rows(path_of(a.work, "rows", run) + ".npz", vocab, a.tokens if run == 1 else a.more_tokens[run - 2],
                     a.seed + run - 1, 1 / 6 if fresh else 0)
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)  # tiny attention weights: without this the attention takes four times as long
    shape = Shape(vocab=len(vocab.tokens))
    model = Model(shape).to(a.device)
    model.compiled = torch.compile(model.hidden, dynamic=False) if a.compile else model.hidden
    optimiser = Optimisers(model, a.matrix_rate, a.rate)
    n_rows = len(rows["ids"])
    data = {k: rows[k] for k in rows.files}
    if not fresh:
        data["weights"][data["weights"] < 1] = 0
    n_steps = min(a.steps or n_rows * a.epochs // a.batch, n_rows * a.epochs // a.batch)
    order = np.arange(n_rows * a.epochs) % n_rows
    path, step = path_of(a.work, "state", run), 0
    state = load_parts(path)
    if state:
        step = state["step"]
        log(a.work, f"run {run} continues at step {step} of {n_steps}")
    elif run > 1:
        state = load_parts(path_of(a.work, "state", run - 1))
    elif a.start:
        start_from(model, a.start, vocab)
    if state:
        model.load_state_dict(state["model"])
        optimiser.load(state["optimiser"])
    share = 1 if run == 1 else a.more_rate
    n_params = sum(p.numel() for p in model.parameters())
    log(a.work, f"{n_params} parameters, {n_rows} rows of {SEQUENCE}, {n_steps} steps")
    start = saved = time.time()
    shown, losses = step, []
    while step < n_steps:
        model.zero_grad(set_to_none=True)
        loss = loss_of(model, *batch_of(data, order[step * a.batch:(step + 1) * a.batch], a.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step(share * rate(step, n_steps))
        losses.append(loss.item())
        step += 1
        if step % 20 == 0:
            spent = time.time() - start
            speed = (step - shown) * a.batch * SEQUENCE / max(1e-9, time.time() - getattr(train, "mark", start))
            train.mark, shown = time.time(), step
            log(a.work, f"step {step} loss {np.mean(losses[-20:]):.4f} "
                        f"rate {a.rate * share * rate(step - 1, n_steps):.2e} {speed:.0f} tokens/s {spent:.0f} s")
        done = step == n_steps or (a.stop_after and time.time() - start > a.stop_after)
        if done or time.time() - saved > a.save_every:
            save_parts(path, {"model": model.state_dict(), "optimiser": optimiser.state(), "step": step})
            saved = time.time()
        if done:
            break
    return model.cpu(), step == n_steps


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
    ap.add_argument("--start", help="GGUF file of this trainer whose weights the first run starts with")
    ap.add_argument("--tokens", type=int, default=66_000_000, help="size of the corpus")
    ap.add_argument("--more-tokens", type=int, nargs="*", default=[], help="size of the corpus of each later run")
    ap.add_argument("--more-rate", type=float, default=.5, help="peak rate of later runs, as a share of the first")
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--steps", type=int, default=0, help="steps of the schedule; default: all rows, --epochs times")
    ap.add_argument("--batch", type=int, default=8, help="rows a step")
    ap.add_argument("--rate", type=float, default=3e-3, help="peak learning rate of the table and the norms")
    ap.add_argument("--matrix-rate", type=float, default=0.02, help="peak learning rate of the matrices")
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
    for run in range(1, 2 + len(a.more_tokens)):
        model, finished = train(a, vocab, run)
        if not finished:
            break
    export(a.out, model, vocab)
    print(a.out, os.path.getsize(a.out), "bytes", "" if finished else "(not finished)")


if __name__ == "__main__":
    main()
