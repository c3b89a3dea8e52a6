#!/usr/bin/env python3
"""Compares greedy answers of the trainer's forward pass with those of the engine, id by id.

usage: agree.py --program build/app/bitnet-chat --model demo.gguf [--work demo-work] [--n 200]

The trainer runs model.py with exact=True and the last checkpoint of --work, or else with the weights of the file,
without a KV cache. The engine runs in bitnet-chat --greedy. At the first difference of an answer the gap between the
trainer's two best logits is printed, because two float32 programs may differ only where this gap is small. Exits with 1
if fewer than 95 % of the answers agree or if a gap is above 0.1. Needs the packages of train.py.
"""
import argparse
import json
import subprocess
import sys

import torch

from model import Model, Shape
from score import conversations
from train import load_state, shape_of, start_from, vocab_path, vocabulary_of
from vocabulary import Vocabulary, read_vocabulary

LONGEST = 80


def engine_ids(program, model, text):
    command = [program, "--json", "--logprobs", "1", "--greedy", "--private", "--quiet", "-n", str(LONGEST),
               "-p", text, "-m", model]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return [token["id"] for token in json.loads(done.stdout)["logprobs"]]


@torch.no_grad()
def trainer_ids(model, vocab, text):
    """-> (ids of the answer, gap between the two best logits at each id and at the end)"""
    ids, _ = vocab.conversation([(text, None, 0)])
    answer, gaps = [], []
    while len(answer) < LONGEST:
        n = len(ids)
        first = torch.zeros(1, n, dtype=torch.int32)
        logits = model.logits(model.hidden(torch.tensor([ids]), torch.arange(n)[None], first, exact=True)[:, -1])[0]
        best = logits.topk(2)
        gaps.append(float(best.values[0] - best.values[1]))
        token = int(best.indices[0])
        if token in (vocab.eot, vocab.eos):
            break
        answer.append(token)
        ids.append(token)
    return answer, gaps


def trainer_of(work, path):
    """-> the trainer's model and vocabulary, from the checkpoint of a work directory or from a GGUF file"""
    if work:
        state, vocab = load_state(work), read_vocabulary(vocab_path(work))
        model = Model(Shape(**state["shape"]))
        model.load_state_dict(state["model"])
        return model, vocab
    vocab = Vocabulary(**vocabulary_of(path))
    model = Model(shape_of(path))
    start_from(model, path, vocab)
    return model, vocab


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--work", help="default: the weights of the file")
    ap.add_argument("--n", type=int, default=200)
    a = ap.parse_args()
    model, vocab = trainer_of(a.work, a.model)
    texts = [turn["user"] for turns in conversations() for turn in turns][:a.n]
    same, worst = 0, 0.0
    for text in texts:
        ours, gaps = trainer_ids(model, vocab, text)
        theirs = engine_ids(a.program, a.model, text)
        if ours == theirs:
            same += 1
            continue
        at = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), min(len(ours), len(theirs)))
        worst = max(worst, gaps[at])
        print(f"differ at {at} (gap {gaps[at]:.4f}): {text}\n  trainer {vocab.text(ours)}\n"
              f"  engine  {vocab.text(theirs)}")
    print(f"{same} of {len(texts)} the same; largest gap at a first difference {worst:.4f}")
    sys.exit(same < .95 * len(texts) or worst > .1)


if __name__ == "__main__":
    main()
