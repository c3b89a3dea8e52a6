#!/usr/bin/env python3
"""
check_golden.py BITNET_INSPECT FOLDER [OPTION...]: compares logits with reference logits.

FOLDER holds files NAME.gguf with NAME.logits (float32, one row per token of tokens.txt) and, for
some, NAME.logits-long (tokens-long.txt). A NAME that ends in -b or -c has I2_S layout b or c. OPTIONs
are passed to `bitnet-inspect logits`. The check passes if at least 60 % of all positions have a
relative L2 distance below 1e-5 from the reference, none is above 5e-2, and the best token is the same
wherever the reference's best logit leads by more than 0.3 standard deviations of its row. A correct
engine reaches about 80 %: one value that is rounded differently to int8 or F16 changes later values
by 1e-3 to 2e-2.
"""
import array
import math
import os
import subprocess
import sys
import tempfile

CLOSE, FAR, SHARE, LEAD = 1e-5, 5e-2, 0.6, 0.3


def floats(path):
    out = array.array('f')
    with open(path, 'rb') as file:
        out.frombytes(file.read())
    if sys.byteorder == 'big':
        out.byteswap()
    return out


def logits_of(command, out):
    done = subprocess.run(command + ['--out', out], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)[:200]} ... failed:\n{done.stdout}')
    return floats(out)


def compare_row(mine, truth):
    """(relative L2, is the best token wrong where it must be right)"""
    squares = math.fsum(t * t for t in truth)
    rel = math.sqrt(math.fsum((m - t) ** 2 for m, t in zip(mine, truth)) / squares)
    mean = math.fsum(truth) / len(truth)
    deviation = math.sqrt(squares / len(truth) - mean * mean)
    second, best = sorted(truth)[-2:]
    wrong = best - second > LEAD * deviation and mine[truth.index(best)] != max(mine)
    return rel, wrong


def check(command, tokens, reference, label):
    with open(tokens, encoding='ascii') as file:
        ids = file.read().strip()
    with tempfile.TemporaryDirectory() as folder:
        mine = logits_of(command + ['--tokens', ids], os.path.join(folder, 'logits'))
    truth = floats(reference)
    n_vocab = len(truth) // len(ids.split(','))
    if len(mine) != len(truth):
        sys.exit(f'{label}: {len(mine)} logits, the reference has {len(truth)}')
    rows = [compare_row(mine[i:i + n_vocab], truth[i:i + n_vocab])
            for i in range(0, len(truth), n_vocab)]
    close = sum(rel < CLOSE for rel, _ in rows)
    worst = max(rel for rel, _ in rows)
    wrong = sum(bad for _, bad in rows)
    print(f'{label:24} {close:4} of {len(rows):4} close, worst {worst:.1e}, {wrong} best wrong')
    return len(rows), close, worst, wrong


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inspect, folder, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    results = []
    for name in sorted(n[:-5] for n in os.listdir(folder) if n.endswith('.gguf')):
        path = os.path.join(folder, name)
        command = [inspect, 'logits', path + '.gguf'] + options
        if name[-2:] in ('-b', '-c'):
            command += ['--i2s-layout', name[-1]]
        for suffix in ('', '-long'):
            if os.path.exists(f'{path}.logits{suffix}'):
                results.append(check(command, os.path.join(folder, f'tokens{suffix}.txt'),
                                     f'{path}.logits{suffix}', name + suffix))
    n_rows, n_close = sum(r[0] for r in results), sum(r[1] for r in results)
    ok = (n_rows > 0 and n_close >= SHARE * n_rows and all(r[2] <= FAR for r in results) and
          not any(r[3] for r in results))
    print(f'{n_close} of {n_rows} positions close: {"passed" if ok else "FAILED"}')
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
