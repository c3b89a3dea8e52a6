#!/usr/bin/env python3
"""The commands, keys and options of bitnet-chat, as the program itself lists them.

usage: program.py --program build/app/bitnet-chat > app/demo/program.txt

The corpus takes the descriptions of commands from program.txt, so training does not need the program. A test
compares the file with the program, and the topics of the corpus with the file. If the test fails because a command,
key or option is new, add a topic to topics.txt; then run this script and train the model again.
"""
import argparse
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = re.compile(r"^/(\w+)(?: \S.*?)?  +(\S.*)$")
KEYS = re.compile(r"^(\S.*?)  +(\S.*)$")
OPTION = re.compile(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]+)")


def said(program, args, lines=""):
    env = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent"}
    done = subprocess.run([program, *args], input=lines, capture_output=True, text=True, check=True, env=env)
    return (done.stdout + done.stderr).splitlines()


def commands(program):
    """{name with its slash: description}"""
    found = map(COMMAND.match, said(program, ["-i", "--private"], "/help\n"))
    return {"/" + m[1]: m[2] for m in found if m}


def keys(program):
    """{key: description} from /help keys. A row may name several keys."""
    found = [m for m in map(KEYS.match, said(program, ["-i", "--private"], "/help keys\n")) if m]
    return {key: m[2] for m in found for key in m[1].split(", ")}


def options(program):
    return sorted({m[1] for m in map(OPTION.match, said(program, ["--help", "all"])) if m})


def listing(program):
    """The text of program.txt."""
    rows = [f"{name} | {brief}" for part in (commands(program), keys(program)) for name, brief in part.items()]
    return "\n".join(rows + options(program)) + "\n"


def recorded():
    """-> {command or key: description}, [options] of program.txt"""
    with open(os.path.join(HERE, "program.txt"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split(" | ", 1) for line in f]
    return {row[0]: row[1] for row in rows if len(row) == 2}, [row[0] for row in rows if len(row) == 1]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", required=True)
    print(listing(ap.parse_args().program), end="")


if __name__ == "__main__":
    main()
