#!/usr/bin/env python3
"""Draws the roofline of a machine and the measured rates of a model, as an SVG picture.

usage: roofline.py BENCH.json ... > roofline.svg

Each file is the output of one run of `bitnet-bench --json`, all on the same machine. The x axis is the
number of multiply-adds for each byte read from memory, the y axis multiply-adds per second. No point
can be above the slope (read bandwidth) or above the line of its arithmetic: int8 for each instruction
set, floats for attention (from runs with --profile). Needs only Python.
"""
import html
import json
import math
import sys

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 50
X_MIN, X_MAX, Y_MIN, Y_MAX = 1, 10000, 30, 8000  # multiply-adds a byte, GMAC/s
COLUMN = 6  # multiply-adds a byte: names of all points to the left are printed in a column at this place
SLOPE, INT8, F32 = "#444444", "#2166ac", "#b2182b"
ISA_NAMES = {"ref": "plain C", "avx2": "AVX2", "avxvnni": "AVX-VNNI", "avx512vnni": "AVX-512 VNNI",
             "amx": "AMX"}


def x_at(value):
    value = min(max(value, X_MIN), X_MAX)
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / X_MIN) / math.log(X_MAX / X_MIN)


def y_at(value):
    value = min(max(value, Y_MIN), Y_MAX)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / Y_MIN) / math.log(Y_MAX / Y_MIN)


def text(x, y, words, anchor="start", colour="#222222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
            f'{html.escape(words)}</text>')


def line(x0, y0, x1, y1, colour, width=1.0):
    return (f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def axes():
    for power in range(int(math.log10(X_MIN)), int(math.log10(X_MAX)) + 1):
        x = x_at(10 ** power)
        yield line(x, TOP, x, HEIGHT - BOTTOM, "#eeeeee")
        yield text(x, HEIGHT - BOTTOM + 18, f"{10 ** power:,}", "middle")
    for value in (30, 100, 300, 1000, 3000):
        y = y_at(value)
        yield line(LEFT, y, WIDTH - RIGHT, y, "#eeeeee")
        yield text(LEFT - 8, y + 4, f"{value:,}", "end")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "multiply-adds for a byte read from memory", "middle")
    yield (f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
           f'text-anchor="middle">GMAC/s</text>')


def roof(read, peak, name, colour):
    """A horizontal line from the slope to the right edge."""
    x, y = x_at(peak / read), y_at(peak)
    yield line(x, y, WIDTH - RIGHT, y, colour, 1.5)
    yield text(WIDTH - RIGHT - 4, y - 5, f"{name}: {peak:,.0f} GMAC/s", "end", colour)


def roofs(runs):
    read = max(run["read_gb_per_s"] for run in runs)
    peaks = {}
    for run in runs:
        for key, name in (("int8_gmac_per_s", ISA_NAMES.get(run["isa"], run["isa"]) + ", bytes"),
                          ("f32_gmac_per_s", "floats")):
            if run[key]:
                peaks[name] = max(peaks.get(name, 0), run[key])
    top = max(peaks.values())
    yield line(x_at(max(X_MIN, Y_MIN / read)), y_at(max(X_MIN * read, Y_MIN)), x_at(top / read), y_at(top),
               SLOPE, 1.5)
    yield text(x_at(6) - 8, y_at(6 * read) - 8, f"memory: {read:.1f} GB/s", "end", SLOPE)
    for name, peak in sorted(peaks.items(), key=lambda item: item[1]):
        yield from roof(read, peak, name, F32 if name == "floats" else INT8)


def row_name(run, row):
    words = [row["test"]]
    if row["depth"]:
        words.append(f"depth {row['depth']}")
    if row["batch"] > 1:
        words.append(f"batch {row['batch']}")
    if row["test"].startswith("pp"):
        words.append(ISA_NAMES.get(run["isa"], run["isa"]))
    elif run["skip"] == "off":
        words.append("all weights")
    if run["name"]:
        words.append(run["name"].removeprefix("synthetic-"))
    return ", ".join(words)


def points(runs):
    """Yield (multiply-adds a byte, GMAC/s, name, colour)."""
    for run in runs:
        for row in run["rows"]:
            macs = 1e9 * row["gmac_per_s"] / row["tokens_per_s"]
            yield macs / row["bytes_per_token"], row["gmac_per_s"], row_name(run, row), INT8
            for step in row.get("profile", []):
                if step["step"] == "attention" and step["gmac_per_s"] and step["gb_per_s"]:
                    yield (step["gmac_per_s"] / step["gb_per_s"], step["gmac_per_s"],
                           "attention of " + row_name(run, row), F32)


def marks(runs):
    """
    Points and their names. A name moves down where it would cover another. Points of decoding are close
    together, so their names are in a column, each with a line to its point.
    """
    taken = []
    for macs, rate, name, colour in sorted(points(runs), key=lambda point: -point[1]):
        x, y = x_at(macs), y_at(rate)
        on_left = x > WIDTH - 300
        is_decoding = x < x_at(COLUMN)
        words_x = x_at(COLUMN) + 20 if is_decoding else x - 9 if on_left else x + 9
        words_y, length = y + 4, 6.2 * len(name)
        begin = words_x - length if on_left else words_x
        while any(abs(words_y - other_y) < 14 and begin < end and other < begin + length
                  for other, end, other_y in taken):
            words_y += 2
        taken.append((begin, begin + length, words_y))
        if is_decoding:
            yield line(x, y, words_x - 4, words_y - 4, "#bbbbbb")
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        yield text(words_x, words_y, name, "end" if on_left else "start")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    runs = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            runs.append(json.load(file))
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
          f'font-family="sans-serif" font-size="12">'
          f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    for part in (*axes(), *roofs(runs), *marks(runs)):
        print(part)
    print("</svg>")


if __name__ == "__main__":
    main()
