#!/usr/bin/env python3
"""
check_golden.py BITNET_INSPECT FOLDER [OPTION...]: compares logits with reference logits.

FOLDER holds models NAME.gguf and reference logits (float32, one row for each token). OPTIONs are
passed to `bitnet-inspect logits`. There are three kinds of folders. Without FOLDER, or without models
in it, the exit status is 77: skipped.

- With a file LIST, whose lines are: model, logits, tokens, every, activations, context, window. The
  logits file has every Nth row. `auto` activations of the list are `token` for files b158s* and
  `block` for the others. Lists of one row per token must be close (relative L2 below 1e-5) at three
  of four positions and nowhere beyond 5e-2; longer lists must have a median of at most 5e-2, because
  roundings to int8 that differ add up; with float activations every row must be within 1e-3. Lines
  with the same logits must give the same bytes. Instruction sets, threads and micro-batches must not
  change a byte.
- With files NAME.tokens: files of a family hf-* must be close at 80 % of the positions. The others are
  checked with float activations, within 2e-3 everywhere; several containers NAME-TYPE.gguf may share
  a reference, and dense files must be refused.
- Else with tokens.txt and, for NAME.logits-long, tokens-long.txt. A NAME that ends in -b or -c has
  I2_S layout b or c. At least 60 % of all positions must be close, none beyond 5e-2, and the best
  token must be the same wherever the reference's best logit leads by more than 0.3 standard
  deviations of its row. A correct engine reaches about 80 %: one value that is rounded differently to
  int8 or F16 changes later values by 1e-3 to 2e-2.
"""
import array
import math
import os
import statistics
import subprocess
import sys
import tempfile

CLOSE, FAR, SHARE, LEAD = 1e-5, 5e-2, 0.6, 0.3
SHORT_SHARE, LONG_MEDIAN, FLOAT_FAR = 0.75, 5e-2, 1e-3
MINI_SHARE, OTHER_FLOAT_FAR = 0.8, 2e-3
# Parts of a model's name that the engine does not support yet, and the families that it does.
FAMILIES = ('qwen3-', 'qwen3w-', 'minicpm-row-', 'b158s-', 'maple-', 'qwen35-')
UNSUPPORTED = ('-split-',)
VARIATIONS = (['--isa', 'ref', '--threads', '1'], ['--isa', 'avx2', '--threads', '2'],
              ['--threads', '5', '--ubatch', '7'], ['--ubatch', '1'], ['--reuse', '11'])


def floats_of(data):
    out = array.array('f')
    out.frombytes(data)
    if sys.byteorder == 'big':
        out.byteswap()
    return out


def read(path, *mode):
    with open(path, *(mode or ('rb',))) as file:
        return file.read()


def run(command):
    """(bytes of the logits, None), or (None, message)"""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'logits')
        done = subprocess.run(command + ['--out', out], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return (read(out), None) if done.returncode == 0 else (None, done.stdout)


def logits_of(command):
    data, message = run(command)
    if data is None:
        sys.exit(f'{" ".join(command)[:200]} ... failed:\n{message}')
    return data


def compare_row(mine, truth):
    """(relative L2, is the best token wrong where it must be right)"""
    squares = math.fsum(t * t for t in truth)
    rel = math.sqrt(math.fsum((m - t) ** 2 for m, t in zip(mine, truth)) / squares)
    mean = math.fsum(truth) / len(truth)
    deviation = math.sqrt(squares / len(truth) - mean * mean)
    second, best = sorted(truth)[-2:]
    wrong = best - second > LEAD * deviation and mine[truth.index(best)] != max(mine)
    return rel, wrong


def compare(data, n_ids, every, reference, label):
    """compare_row of every Nth row; the reference has only these rows."""
    mine, truth = floats_of(data), floats_of(read(reference))
    n_vocab = len(mine) // n_ids
    n_rows = n_ids // every
    if len(mine) != n_ids * n_vocab or len(truth) != n_rows * n_vocab:
        sys.exit(f'{label}: {len(mine)} logits for {n_ids} tokens, the reference has {len(truth)}')
    rows = []
    for i in range(n_rows):
        at = ((i + 1) * every - 1) * n_vocab
        rows.append(compare_row(mine[at:at + n_vocab], truth[i * n_vocab:(i + 1) * n_vocab]))
    rels = [rel for rel, _ in rows]
    print(f'{label:44} {sum(r < CLOSE for r in rels):4} of {len(rels):4} close, median '
          f'{statistics.median(rels):.1e}, worst {max(rels):.1e}, {sum(w for _, w in rows)} best wrong')
    return rows


def share_close(rels):
    return sum(rel < CLOSE for rel in rels) / len(rels)


# ---- folders with a LIST ----

def passes(rels, every, activations):
    if not all(math.isfinite(rel) for rel in rels):
        return False
    if activations == 'float':
        return max(rels) <= FLOAT_FAR
    if every > 1:
        return statistics.median(rels) <= LONG_MEDIAN
    return share_close(rels) >= SHORT_SHARE and max(rels) <= FAR


def same_bytes_always(command, expected, label):
    for words in VARIATIONS:
        data, message = run(command + words)
        if data is None and 'cannot run here' in message:
            continue  # an instruction set that this machine lacks
        if data is None:
            sys.exit(f'{label} {" ".join(words)}: {message}')
        if data != expected:
            print(f'{label}: {" ".join(words)} changes the bytes')
            return False
    return True


def check_list(inspect, folder, options):
    n_failed, n_lines, seen = 0, 0, {}
    for line in read(os.path.join(folder, 'LIST'), 'r').splitlines():
        model, logits, tokens, every, activations, context, window = line.split()
        if not model.startswith(FAMILIES) or any(part in model for part in UNSUPPORTED):
            continue
        if activations == 'auto':
            activations = 'token' if model.startswith('b158s') else 'block'
        ids = read(os.path.join(folder, tokens), 'r').strip()
        command = [inspect, 'logits', os.path.join(folder, model), '--tokens', ids,
                   '--activations', activations, '--ctx', context,
                   '--window-rule', window] + options
        label = f'{model} {logits.split(".")[-1]}, {activations}'
        data = logits_of(command)
        rows = compare(data, ids.count(',') + 1, int(every), os.path.join(folder, logits), label)
        ok = passes([rel for rel, _ in rows], int(every), activations)
        if seen.setdefault(logits, data) != data:
            print(f'{label}: other bytes than an equal file')
            ok = False
        ok = same_bytes_always(command, data, label) and ok
        n_lines += 1
        n_failed += not ok
        if not ok:
            print(f'{label}: FAILED')
    print(f'{n_lines - n_failed} of {n_lines} lines passed')
    return n_lines > 0 and n_failed == 0


# ---- folders with NAME.tokens ----

def reference_of(folder, name):
    """The name of the reference of a model: its own, or that of NAME for NAME-TYPE."""
    while name and not os.path.exists(os.path.join(folder, name + '.logits')):
        name = name.rpartition('-')[0]
    return name


def check_tokens(inspect, folder, options):
    n_failed, n_files = 0, 0
    for model in sorted(n for n in os.listdir(folder) if n.endswith('.gguf')):
        name = reference_of(folder, model[:-5])
        is_mini = model.startswith('hf-')
        ids = read(os.path.join(folder, name + '.tokens'), 'r').strip()
        command = [inspect, 'logits', os.path.join(folder, model), '--tokens', ids] + options
        if not is_mini:
            command += ['--activations', 'float']
        data, message = run(command)
        if data is None and 'is dense, not ternary' in message:
            print(f'{model:44} refused, because it is dense')
            continue
        if data is None:
            sys.exit(f'{model}: {message}')
        path = os.path.join(folder, name + '.logits')
        rels = [rel for rel, _ in compare(data, ids.count(',') + 1, 1, path, model)]
        ok = share_close(rels) >= MINI_SHARE if is_mini else max(rels) <= OTHER_FLOAT_FAR
        n_files += 1
        n_failed += not ok
    print(f'{n_files - n_failed} of {n_files} files passed')
    return n_files > 0 and n_failed == 0


# ---- folders with tokens.txt ----

def check_names(inspect, folder, options):
    rows = []
    for name in sorted(n[:-5] for n in os.listdir(folder) if n.endswith('.gguf')):
        path = os.path.join(folder, name)
        command = [inspect, 'logits', path + '.gguf'] + options
        if name[-2:] in ('-b', '-c'):
            command += ['--i2s-layout', name[-1]]
        for suffix in ('', '-long'):
            if os.path.exists(f'{path}.logits{suffix}'):
                ids = read(os.path.join(folder, f'tokens{suffix}.txt'), 'r').strip()
                rows += compare(logits_of(command + ['--tokens', ids]), ids.count(',') + 1, 1,
                                f'{path}.logits{suffix}', name + suffix)
    rels = [rel for rel, _ in rows]
    ok = (len(rows) > 0 and share_close(rels) >= SHARE and max(rels) <= FAR and
          not any(wrong for _, wrong in rows))
    print(f'{share_close(rels):.0%} of {len(rows)} positions close: {"passed" if ok else "FAILED"}')
    return ok


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inspect, folder, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = os.listdir(folder) if os.path.isdir(folder) else []
    if not any(name.endswith('.gguf') for name in names):
        print(f'no reference models in {folder}')
        return 77
    check = (check_list if 'LIST' in names else
             check_tokens if any(name.endswith('.tokens') for name in names) else check_names)
    return 0 if check(inspect, folder, options) else 1


if __name__ == '__main__':
    sys.exit(main())
