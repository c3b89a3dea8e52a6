#!/usr/bin/env python3
"""Makes the pictures of docs/walk.md and README.md: a first chat with the built-in model.

usage: docs/pictures/walk.py [--program build/app/bitnet-chat] [--only NAME,...]

Each picture is the real screen of the program in tmux, with an empty home directory. This script types the keys; the
answers are the model's. Needs tmux and Python.
"""
import argparse
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "app")]
from screen_svg import draw  # noqa: E402 (needs the paths above)
from support.terminal_screen import Screen  # noqa: E402

CODE = 'def area(r):\n    return 3.14159 * r * r\n\nprint(area(2))'


class Walk:
    """One program on one screen, and the keys of its user."""

    def __init__(self, program, folder, words, columns, rows):
        env = {"HOME": folder, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        tmux = tempfile.mkdtemp(dir=folder)
        self.screen = Screen(tmux, env, ["env", f"HOME={folder}", program, *words], columns, rows)
        self.columns = columns

    def type(self, text):
        self.screen.send("-l", text)

    def enter(self, text):
        self.type(text)
        self.screen.send("Enter")

    def count(self):
        return len(re.findall(r"first token", self.screen.text("-S", "-2000")))

    def say(self, text):
        """Send a message and wait for the statistics line after its answer."""
        before = self.count()
        self.enter(text)
        self.wait(lambda: self.count() > before, text)

    def wait(self, holds, name):
        deadline = time.monotonic() + 30
        while not holds():
            if time.monotonic() > deadline:
                sys.exit(f"walk.py: '{name}' did not appear:\n{self.screen.text()}")
            time.sleep(0.05)
        time.sleep(0.2)  # for output that follows at once

    def expect(self, pattern):
        self.wait(lambda: re.search(pattern, self.screen.text()), pattern)

    def command(self, text, pattern):
        self.enter(text)
        self.expect(pattern)

    def paste(self, text):
        self.screen.tmux("set-buffer", text)
        self.screen.tmux("paste-buffer", "-p")

    def take(self, name, title="bitnet-chat"):
        lines = self.screen.text("-e", "-N").rstrip("\n").split("\n")
        with open(os.path.join(HERE, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw(lines, title, self.columns))
        print(name + ".svg")

    def close(self):
        self.screen.close()


def chat(program, folder):
    w = Walk(program, folder, ["--private"], 92, 32)
    w.expect("built-in demo model")
    w.say("Hello! My name is Anna.")
    w.say("How do I save this chat?")
    w.say("What is 17 + 25?")
    w.say("Who painted the Mona Lisa?")
    w.command("/undo", "undone")
    w.say("What is my name?")
    w.command("/context", "when it is full")
    w.take("chat")
    w.close()


def inline(program, folder):
    w = Walk(program, folder, [], 88, 26)
    w.expect("built-in demo model")
    w.take("walk-start")
    w.say("What can you do?")
    w.say("I live in Oslo, and my hobby is sailing.")
    w.say("Where do I live?")
    w.take("walk-talk")
    w.screen.send("C-l")
    w.command("/help", "/help COMMAND explains one")
    w.take("walk-help")
    w.screen.send("C-l")
    w.paste(CODE)
    w.expect("print\\(area")
    w.take("walk-paste")
    w.screen.send("C-c")
    w.command("/set temp 0.8", "temp")
    w.command("/set", "top-p")
    w.take("walk-set")
    w.screen.send("C-l")
    w.say("What is my hobby?")
    w.command("/undo", "undone")
    w.command("/redo", "back|restored|redone")
    w.command("/save oslo", "oslo")
    w.command("/probs 3", "likeliest")
    w.say("Where do I live?")
    w.take("walk-tool")
    w.enter("/quit")
    w.expect("left with 0")
    w.close()


def full(program, folder):
    w = Walk(program, folder, ["--tui", "--session", "oslo"], 88, 26)
    w.expect("built-in demo model")
    w.say("Where do I live?")
    w.take("walk-full")
    w.command("/find Oslo", "Oslo")
    w.take("walk-find")
    w.screen.resize(60, 16)
    w.columns = 60
    w.say("And my hobby?")
    w.take("walk-small")
    w.enter("/quit")
    w.expect("left with 0")
    w.take("walk-left")
    w.close()


WALKS = {"chat": chat, "inline": inline, "full": full}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--program", default=os.path.join(ROOT, "build/app/bitnet-chat"))
    ap.add_argument("--only", default=",".join(WALKS), help="names with commas: " + ", ".join(WALKS))
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in a.only.split(","):
            WALKS[name](os.path.abspath(a.program), folder)


if __name__ == "__main__":
    main()
