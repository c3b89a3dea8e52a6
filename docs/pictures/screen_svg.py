#!/usr/bin/env python3
"""Draws a terminal screen as an SVG picture.

usage: tmux capture-pane -e -p | screen_svg.py [--title TEXT] [--columns N] > picture.svg

Reads text with SGR escape sequences (bold, dim, reverse, 16 colours) and places each run of equal cells at
its column, so that wide characters keep the terminal's columns. Needs only Python.
"""
import argparse
import html
import re
import sys
import unicodedata

CELL_W, CELL_H, PAD, BAR = 8.4, 18, 12, 26
BACK, TEXT = "#1e1e22", "#d8d8d8"
COLOURS = ["#3b3b40", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8d8d8",
           "#7f848e", "#f08a92", "#b5e08f", "#f2d398", "#8cc8ff", "#dda0f0", "#7fd3de", "#ffffff"]
SGR = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\([AB0]|\x1b[=>]|[\x0e\x0f]")


class Pen:
    def __init__(self):
        self.reset()

    def reset(self):
        self.bold = self.dim = self.italic = self.underline = self.reverse = False
        self.fore = self.back = None

    def apply(self, codes):
        for code in [int(c or 0) for c in re.split("[;:]", codes)] if codes else [0]:
            if code == 0:
                self.reset()
            elif code in (1, 2, 3, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code in (23, 24, 27):
                setattr(self, {23: "italic", 24: "underline", 27: "reverse"}[code], False)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fore = code - 30 if code < 40 else code - 82
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.back = code - 40 if code < 50 else code - 92
            elif code == 39:
                self.fore = None
            elif code == 49:
                self.back = None

    def key(self):
        fore = TEXT if self.fore is None else COLOURS[self.fore]
        back = None if self.back is None else COLOURS[self.back]
        if self.reverse:
            fore, back = back or BACK, fore
        return fore, back, self.bold, self.dim, self.italic, self.underline


def width(ch):
    if unicodedata.combining(ch) or unicodedata.category(ch) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def runs(line, pen):
    """List of (column, text, columns, pen key), one for each run of cells with equal attributes."""
    column, start, text, found, at = 0, 0, "", [], 0

    def flush():
        if text:
            found.append((start, text, column - start, pen.key()))

    while at < len(line):
        match = SGR.match(line, at)
        if match:
            flush()
            start, text = column, ""
            if match.group(1) is not None:
                pen.apply(match.group(1))
            at = match.end()
            continue
        text += line[at]
        column += width(line[at])
        at += 1
    flush()
    return found


def draw(lines, title, columns):
    w, h = columns * CELL_W + 2 * PAD, len(lines) * CELL_H + 2 * PAD + BAR
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
           'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
           f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
           f'<text x="{w / 2:.0f}" y="18" fill="#8a8a90" '
           f'text-anchor="middle" font-size="12">{html.escape(title)}</text>']
    pen = Pen()
    for i, line in enumerate(lines):
        y = BAR + PAD + i * CELL_H
        for column, text, n, (fore, back, bold, dim, italic, underline) in runs(line, pen):
            x = PAD + column * CELL_W
            if back:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{n * CELL_W:.1f}" height="{CELL_H}" fill="{back}"/>')
            if not text.strip():
                continue
            style = (' font-weight="bold"' if bold else "") + (' fill-opacity="0.6"' if dim else "") \
                + (' font-style="italic"' if italic else "") + (' text-decoration="underline"' if underline else "")
            out.append(f'<text x="{x:.1f}" y="{y + 13}" fill="{fore}"{style} textLength="{n * CELL_W:.1f}" '
                       f'xml:space="preserve">{html.escape(text)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--title", default="")
    ap.add_argument("--columns", type=int, default=80)
    a = ap.parse_args()
    lines = sys.stdin.read().rstrip("\n").split("\n")
    sys.stdout.write(draw(lines, a.title, a.columns))


if __name__ == "__main__":
    main()
