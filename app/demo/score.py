#!/usr/bin/env python3
"""Asks the demo model held-out questions through bitnet-chat and counts the right answers by kind.

usage: score.py --program build/app/bitnet-chat [--model demo.gguf] [--each N] [--show N]

The conversations are those of held.jsonl. Each goes through `bitnet-chat --lines --json` at the default settings,
so template, tokenizer, forward pass and kept KV are all part of what is measured. --each N asks only until each kind
has N questions. Exits 1 when a kind is below its bar. Needs nothing but Python.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

BARS = {"memory": .97, "help": .97, "arith": .95, "word": .95, "fact": .99, "decline": .90}
HELD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "held.jsonl")


def conversations():
    with open(HELD, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def ask(program, model, users, env=None):
    """Answers of one conversation, in order, as the JSON objects that bitnet-chat prints."""
    command = [program, "--lines", "--json", "--private", "--quiet"] + (["-m", model] if model else [])
    done = subprocess.run(command, input="\n".join(users) + "\n", capture_output=True, text=True, check=False,
                          env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if len(answers) != len(users):
        sys.exit(f"{len(users)} lines gave {len(answers)} answers")
    return answers


def right(kind, want, got):
    """Word for word, but for the declining answer, whose first words decide."""
    if kind == "decline":
        return got.strip().startswith("I don't know")
    return " ".join(got.split()) == " ".join(want.split())


def score(program, model=None, each=None, show=0, env=None):
    """-> (asked, right) by kind"""
    asked, good = collections.Counter(), collections.Counter()
    for turns in conversations():
        if each and all(asked[kind] >= each for kind in BARS):
            break
        if each and not any(asked[t["kind"]] < each for t in turns if t["kind"] in BARS):
            continue
        answers = ask(program, model, [t["user"] for t in turns], env)
        for turn, answer in zip(turns, answers):
            kind, got = turn["kind"], answer["text"]
            if kind not in BARS or each and asked[kind] >= each:
                continue
            asked[kind] += 1
            good[kind] += right(kind, turn["want"], got)
            if show > 0 and not right(kind, turn["want"], got):
                show -= 1
                print(f"{kind}: {turn['user']}\n  want {turn['want']}\n  got  {got}")
    return asked, good


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", required=True)
    ap.add_argument("--model", help="default: the built-in one")
    ap.add_argument("--each", type=int, help="questions of each kind; default: all there are")
    ap.add_argument("--show", type=int, default=0, help="wrong answers to print")
    a = ap.parse_args()
    asked, good = score(a.program, a.model, a.each, a.show)
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
