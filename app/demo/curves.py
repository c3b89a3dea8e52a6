#!/usr/bin/env python3
"""Draws the loss and the learning rate of a training run from the log of train.py, as an SVG file.

usage: curves.py LOG OUT.svg
"""
import math
import re
import sys

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 360, 56, 44
LINE = re.compile(r"step (\d+) loss ([\d.]+) rate ([\d.e+-]+)")


def path_of(points, colour):
    words = " ".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{words}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = {int(m[1]): (float(m[2]), float(m[3])) for m in map(LINE.match, f) if m}
    steps = sorted(rows)
    # Powers of ten: the loss falls by several.
    low, high = (10 ** rounded(math.log10(choose(loss for loss, _ in rows.values())))
                 for choose, rounded in ((min, math.floor), (max, math.ceil)))
    peak = max(rate for _, rate in rows.values())
    across = lambda step: LEFT + (WIDTH - LEFT - 20) * (step - steps[0]) / (steps[-1] - steps[0])
    up = lambda share: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * share
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    height = lambda loss: up(math.log10(loss / low) / math.log10(high / low))
    for i in range(round(math.log10(high / low)) + 1):
        y = height(low * 10 ** i)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 20}" stroke="#dddddd"/>'
                   f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{low * 10 ** i:g}</text>')
    for i in range(-(-steps[0] // 1000) * 1000, steps[-1] + 1, 1000):
        out.append(f'<text x="{across(i):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{i}</text>')
    out.append(path_of([(across(s), up(rows[s][1] / peak * .3)) for s in steps], "#bbbbbb"))
    out.append(path_of([(across(s), height(rows[s][0])) for s in steps], "#1f5fa8"))
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">steps; blue: loss on answers '
               f'(nats a token), last {rows[steps[-1]][0]:.3f}; grey: learning rate, peak {peak:g}</text></svg>')
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
