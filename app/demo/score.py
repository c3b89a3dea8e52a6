#!/usr/bin/env python3
"""Runs held-out questions through bitnet-chat with the demo model and counts the right answers by kind.

usage: score.py --program build/app/bitnet-chat [--model demo.gguf] [--held FILE] [--each N] [--names N] [--show N]

The conversations come from held.jsonl. --names N adds N held-out names and places and N / 2 made-up words
(questions.py): each must come back letter by letter in the answer, in the next turn and after five turns. Each
conversation runs in `bitnet-chat --lines --json` with the default settings and one thread, as many at a time as there
are cores. So the score covers template, tokenizer, forward pass and KV reuse. --each N stops when each kind of
held.jsonl has N questions. Exits with 1 if a kind is below its bar. Needs only Python.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import questions

BARS = {"memory": .974, "help": .995, "arith": 1, "word": .953, "fact": 1, "decline": .983, "people": .97,
        "correct": .97, "command": .98, "sum": .97, "newcomer": .90, "told": .97, "several": .97, "names 0": .995,
        "names 1": .995, "names 5": .995, "made up 0": .995, "made up 1": .995, "made up 5": .995}
HELD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "held.jsonl")


def conversations(held=HELD):
    with open(held, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def name_conversations(n):
    """n names and places, and half as many made-up words, in the form of conversations()."""
    return [[{"user": user, "want": want, "kind": kind} for user, want, kind in turns]
            for turns in questions.name_questions(n, n // 2)]


def ask(program, model, users, env=None):
    """Answers of one conversation, in order, as the JSON objects that bitnet-chat prints."""
    command = [program, "--lines", "--json", "--private", "--quiet", "--overflow", "drop", "--threads", "1"]
    command += ["-m", model] if model else []
    done = subprocess.run(command, input="\n".join(users) + "\n", capture_output=True, text=True, check=False,
                          env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if len(answers) != len(users):
        sys.exit(f"{len(users)} lines gave {len(answers)} answers")
    return answers


def right(kind, want, got):
    """
    Equal up to white space. "I don't know" is enough for a question that the model should decline. The answer to the
    statement of a name must contain it.
    """
    if kind == "decline" and got.strip().startswith("I don't know"):
        return True
    if kind.endswith(" 0"):
        return re.search(rf"(?<!\w){re.escape(want)}(?!\w)", got) is not None
    return " ".join(got.split()) == " ".join(want.split())


def chosen(talks, each):
    """
    -> ([(conversation, its turns that are scored)], number of these turns by kind). With `each`, no kind has more turns
    than that, and conversations without a scored turn are left out.
    """
    asked, out = collections.Counter(), []
    for turns in talks:
        scored = []
        for i, turn in enumerate(turns):
            if turn["kind"] in BARS and not (each and asked[turn["kind"]] >= each):
                asked[turn["kind"]] += 1
                scored.append(i)
        if scored or not each:
            out.append((turns, scored))
    return out, asked


def score(program, model=None, each=None, show=0, env=None, talks=None):
    """-> (asked, right) by kind, of the conversations `talks` or of held.jsonl. One conversation runs on each core."""
    good = collections.Counter()
    talks, asked = chosen(talks or conversations(), each)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        all_answers = pool.map(lambda talk: ask(program, model, [t["user"] for t in talk[0]], env), talks)
        for (turns, scored), answers in zip(talks, all_answers):
            for i in scored:
                turn, got = turns[i], answers[i]["text"]
                is_right = right(turn["kind"], turn["want"], got)
                good[turn["kind"]] += is_right
                if show > 0 and not is_right:
                    show -= 1
                    print(f"{turn['kind']}: {turn['user']}\n  want {turn['want']}\n  got  {got}")
    return asked, good


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", required=True)
    ap.add_argument("--model", help="default: the built-in model")
    ap.add_argument("--held", default=HELD, help="file of conversations; default: held.jsonl")
    ap.add_argument("--names", type=int, default=0, help="names and places to tell the model")
    ap.add_argument("--each", type=int, help="questions of each kind; default: all")
    ap.add_argument("--show", type=int, default=0, help="wrong answers to print")
    a = ap.parse_args()
    asked, good = score(a.program, a.model, a.each, a.show, talks=conversations(a.held))
    if a.names:
        parts = score(a.program, a.model, None, a.show, talks=name_conversations(a.names))
        asked, good = asked + parts[0], good + parts[1]
    failed, scored = 0, {kind: bar for kind, bar in BARS.items() if asked[kind]}
    for kind, bar in scored.items():
        share = good[kind] / max(1, asked[kind])
        failed += share < bar
        verdict = "  BELOW" if share < bar else ""
        print(f"{kind:9} {good[kind]:5}/{asked[kind]:<5} {share:6.1%}  (bar {bar:.1%}){verdict}")
    print(f"{len(scored) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
