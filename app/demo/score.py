#!/usr/bin/env python3
"""Asks the demo model held-out questions through bitnet-chat and counts the right answers by kind.

usage: score.py --program build/app/bitnet-chat [--model demo.gguf] [--n 2000] [--seed 7] [--show N]

Each conversation goes through `bitnet-chat --lines --json`, so template, tokenizer, forward pass and kept KV
are all part of what is measured. Exits 1 when a kind is below its bar. Needs nothing but Python.
"""
import argparse
import collections
import json
import random
import subprocess
import sys

import corpus

BARS = {"memory": .97, "help": .97, "arith": .95, "word": .95, "fact": .99, "decline": .90}


def ask(program, model, users):
    command = [program, "--lines", "--json", "--private"] + (["-m", model] if model else [])
    done = subprocess.run(command, input="\n".join(users) + "\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    answers = [json.loads(line)["text"] for line in done.stdout.splitlines() if line.strip()]
    if len(answers) != len(users):
        sys.exit(f"{len(users)} lines gave {len(answers)} answers")
    return answers


def right(kind, want, got):
    """Word for word, but for the declining answer, whose first words decide."""
    if kind == "decline":
        return got.strip().startswith("I don't know")
    return " ".join(got.split()) == " ".join(want.split())


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", required=True)
    ap.add_argument("--model", help="default: the built-in one")
    ap.add_argument("--n", type=int, default=2000, help="questions")
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--show", type=int, default=0, help="wrong answers to print")
    a = ap.parse_args()
    maker = corpus.Maker("held", random.Random(a.seed))
    asked, good, shown = collections.Counter(), collections.Counter(), 0
    while sum(asked.values()) < a.n:
        turns = maker.conversation()[:8]
        answers = ask(a.program, a.model, [user for user, _, _ in turns])
        for (user, want, kind), got in zip(turns, answers):
            if kind not in BARS:
                continue
            asked[kind] += 1
            good[kind] += right(kind, want, got)
            if shown < a.show and not right(kind, want, got):
                shown += 1
                print(f"{kind}: {user}\n  want {want}\n  got  {got}")
    failed = 0
    for kind, bar in BARS.items():
        share = good[kind] / max(1, asked[kind])
        failed += share < bar
        verdict = "  BELOW" if share < bar else ""
        print(f"{kind:8} {good[kind]:5}/{asked[kind]:<5} {share:6.1%}  (bar {bar:.0%}){verdict}")
    print(f"{len(BARS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
