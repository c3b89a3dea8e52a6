#!/usr/bin/env python3
"""The questions of score.py: held-out conversations, and held-out names in held-out statements.

usage: questions.py N [--seed S] > held.jsonl    conversations with N scored questions
"""
import argparse
import json
import random

import corpus
import names
from phrase_files import sentence_case

SCORED = ("memory", "people", "correct", "help", "command", "arith", "sum", "word", "fact", "newcomer", "decline")


def print_held(n_questions, seed):
    """Print conversations of at most eight turns, one JSON array a line, until n_questions turns are scored."""
    maker, n = corpus.Maker("held", random.Random(seed)), 0
    while n < n_questions:
        turns = maker.conversation()[:8]
        n += sum(kind in SCORED for _, _, kind in turns)
        print(json.dumps([{"user": u, "want": a, "kind": k} for u, a, k in turns]))


def name_questions(n_names, n_made_up, seed=1):
    """
    -> conversations with a held-out name or place, or a made-up word, in a statement of a phrasing that training does
    not contain. The answer must repeat the word at once, in the next turn and after five turns.
    """
    rng = random.Random(seed)
    maker = corpus.Maker("held", rng)
    held = rng.sample(names.HELD_NAMES, min(n_names, len(names.HELD_NAMES)))
    words = [maker.new_word(False) for _ in range(n_made_up)]
    for i, x in enumerate(held + words):
        is_name = i < len(held)
        kind = rng.choice(("name", "home", "pet") if is_name else ("name", "home", "pet", "food", "food"))
        x = x.lower() if is_name and rng.random() < .2 else x
        label = "names" if is_name else "made up"
        known = {kind: x}
        tell = rng.choice(corpus.PHRASES["tell new " + kind] + corpus.KEPT["tell " + kind]).format(x=x)
        tell = sentence_case(tell) if x[0].isupper() else tell
        between = [maker.one_off() for _ in range(3)]
        yield [(tell, x, label + " 0"), (maker.ask(known, kind)[0], corpus.RECALL[kind].format(x=x), label + " 1"),
               *[(u, a, "between") for u, a, _ in between],
               (maker.ask(known, kind)[0], corpus.RECALL[kind].format(x=x), label + " 5")]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("n", type=int)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    print_held(a.n, a.seed)


if __name__ == "__main__":
    main()
