#!/usr/bin/env python3
"""
lint_selftest.py ROOT COMPILER...: each rule reports its bad snippets, and no rule reports a good one.
A rule without a bad snippet is a failure, so that a rule that can never fail is found.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import lint
import lint_cycles
import lint_headers
import lint_rules
from lint_source import Source

OPEN = '/*\n * A snippet.\n */\n'
ARGS = ', '.join(f'int a{i}' for i in range(8))


def body(n):
    return 'void f(void)\n{\n' + '    g();\n' * (n - 2) + '}\n'


# rule, path, text: exactly this rule reports the file.
BAD = [
    ('include', 'engine/base/a.c', OPEN + '#include "engine/gguf/gguf.h"\n'),
    ('include', 'engine/gguf/a.c', OPEN + '#include "engine/model/model.h"\n'),
    ('include', 'engine/model/a.c', OPEN + '#include "engine/backend/backend.h"\n'),
    ('include', 'engine/cpu/a.c', OPEN + '#include "engine/cuda/cuda_backend.h"\n'),
    ('include', 'engine/cpu/a.c', OPEN + '#include "engine/gguf/gguf.h"\n'),
    ('include', 'engine/cuda/a.cu', OPEN + '#include "engine/cpu/kernels.h"\n'),
    ('include', 'engine/session.c', OPEN + '#include "engine/model/model.h"\n'),
    ('include', 'engine/sampler/a.c', OPEN + '#include "engine/engine.h"\n'),
    ('include', 'tokenizer/bpe/bpe.c', OPEN + '#include "engine/file.h"\n'),
    ('include', 'templates/a.c', OPEN + '#include "tokenizer/tokenizer.h"\n'),
    ('include', 'app/chat/chat.c', OPEN + '#include "engine/gguf/gguf.h"\n'),
    ('include', 'engine/engine.c', OPEN + '#include "tokenizer/tokenizer.h"\n'),
    ('include-root', 'app/a.c', OPEN + '#include "../engine/engine.h"\n'),
    ('include-root', 'app/a.c', OPEN + '#include "chat.h"\n'),
    ('foreign', 'app/ui/ui_inline.c', OPEN + '#include <ncurses.h>\n'),
    ('foreign', 'app/ui/ui_full.c', OPEN + '#include <term.h>\n'),
    ('foreign', 'app/chat/chat.c', OPEN + '#include <readline/readline.h>\n'),
    ('foreign', 'tokenizer/bpe/bpe.c', OPEN + '#include <pcre2.h>\n'),
    ('foreign', 'engine/cpu/cpu_attn.c', OPEN + '#include <immintrin.h>\n'),
    ('foreign', 'engine/cpu/x86/a.c', OPEN + '#include <arm_neon.h>\n'),
    ('foreign', 'engine/session.c', OPEN + '#include <pthread.h>\n'),
    ('foreign', 'engine/cpu/a.c', OPEN + '#include <cuda_runtime.h>\n'),
    ('words', 'engine/a.c', OPEN + 'void f(void)\n{\n    exit(1);\n}\n'),
    ('words', 'tokenizer/a.c', OPEN + 'void f(void)\n{\n    abort();\n}\n'),
    ('words', 'templates/a.c', OPEN + 'void f(void)\n{\n    printf("x");\n}\n'),
    ('words', 'engine/a.c', OPEN + 'void f(void)\n{\n    fprintf(stderr, "x");\n}\n'),
    ('words', 'engine/a.c', OPEN + 'void f(void)\n{\n    puts("x");\n}\n'),
    ('words', 'engine/a.c', OPEN + 'void f(void)\n{\n    g(getenv("X"));\n}\n'),
    ('words', 'app/chat/chat.c', OPEN + 'void f(void)\n{\n    g(getenv("X"));\n}\n'),
    ('words', 'app/chat/chat.c', OPEN + 'void f(void)\n{\n    exit (1);\n}\n'),
    ('words', 'app/main.c', OPEN + 'void f(char *s)\n{\n    sprintf(s, "x");\n}\n'),
    ('openmp', 'engine/session.c', OPEN + 'void f(void)\n{\n#pragma omp parallel\n    g();\n}\n'),
    ('mutable', 'engine/a.c', OPEN + 'static int n;\n'),
    ('mutable', 'engine/a.c', OPEN + 'int n = 3;\n'),
    ('mutable', 'engine/a.c', OPEN + 'static const char *names[] = {"a"};\n'),
    ('mutable', 'engine/a.c', OPEN + 'static struct {\n    int n;\n} state;\n'),
    ('mutable', 'engine/a.c', OPEN + 'static struct {\n    const char *s;\n} all[] = {{"a"}};\n'),
    ('mutable', 'tokenizer/a.c', OPEN + 'static struct vocab *last;\n'),
    ('mutable', 'templates/a.c', OPEN + 'static void (*hook)(int a);\n'),
    ('mutable', 'engine/a.c', OPEN + 'void f(void)\n{\n    static int n;\n    n++;\n}\n'),
    ('function-lines', 'app/a.c', OPEN + body(81)),
    ('function-lines', 'engine/cpu/a.c', OPEN + body(151)),
    ('parameters', 'app/a.c', OPEN + f'void f({ARGS});\n'),
    ('parameters', 'app/a.c', OPEN + f'static bool f({ARGS})\n' + '{\n    return true;\n}\n'),
    ('file-lines', 'app/a.c', OPEN + '\n' * 798),
    ('file-lines', 'app/a.h', OPEN + '\n' * 248),
    ('columns', 'app/a.c', OPEN + '/* ' + 'x' * 95 + ' */\n'),
    ('columns', 'app/a.py', 'x' * 121 + '\n'),
    ('names', 'app/a.c', OPEN + 'void ' + 'x' * 33 + '(void);\n'),
    ('names', 'tests/a.c', OPEN + 'void ' + 'x' * 61 + '(void);\n'),
    ('opening', 'app/a.c', '#include <stdio.h>\n'),
    ('opening', 'app/a.c', '/* One line. */\n'),
    ('opening', 'app/a.c', '/*\n' + ' * word\n' * 16 + ' */\n'),
    ('blanks', 'app/a.c', OPEN + 'int f(void); \n'),
    ('blanks', 'app/a.c', OPEN + '\tint f(void);\n'),
    ('blanks', 'app/a.c', OPEN + 'int f(void);'),
    ('ascii', 'app/a.c', OPEN + '/* \u2026 */\n'),
    ('tickets', 'app/a.c', OPEN + '/* TODO: more */\n'),
    ('tickets', 'app/a.c', OPEN + '/* see #12 */\n'),
    ('tickets', 'app/a.c', OPEN + '/* issue 7 */\n'),
    ('tickets', 'app/a.c', OPEN + '/* since 2024-01-31 */\n'),
    ('tickets', 'app/a.sh', '#!/bin/sh\nset -eu\n# TODO: more\n'),
    ('tickets', 'tests/app/a.py', 'n = 1  # since 2024-01-31\n'),
    ('shell', 'app/a.sh', '#!/bin/sh\necho hello\n'),
    ('shell', '.ci/run', '#!/usr/bin/env bash\necho hello\n'),
    ('doc-columns', 'docs/a.md', 'word ' * 24 + 'w\n'),
    ('doc-columns', 'docs/a.md', '```\n' + 'x ' * 61 + 'x\n```\n' + 'word ' * 24 + 'w\n'),
    ('test-imports', 'tests/app/test_a.py', 'from test_b import Case\n'),
    ('test-imports', 'tests/app/ui/test_a.py', 'import app.test_b\n'),
]

# path, text: no rule reports the file.
GOOD = [
    ('engine/gguf/a.c', OPEN + '#include "engine/base/error.h"\n#include <string.h>\n'),
    ('engine/cpu/a.c', OPEN + '#include "engine/backend/backend.h"\n#include <omp.h>\n'),
    ('engine/cpu/x86/a.c', OPEN + '#include <immintrin.h>\n'),
    ('engine/engine.c', OPEN + '#include "engine/model/model.h"\n'),
    ('tokenizer/vocab/vocab_gguf.c', OPEN + '#include "engine/file.h"\n'),
    ('tokenizer/bpe/pretok.c', OPEN + '#include <pcre2.h>\n'),
    ('app/terminal/curses_screen.c', OPEN + '#include <ncurses.h>\n'),
    ('app/common/env.c', OPEN + 'void f(void)\n{\n    g(getenv("X"));\n}\n'),
    ('app/main.c', OPEN + 'void f(void)\n{\n    exit(2);\n}\n'),
    ('engine/a.c', OPEN + 'void f(char *s)\n{\n    snprintf(s, 2, "exit(1) printf(");\n}\n'),
    ('engine/a.c', OPEN + '/* no exit(1) */\nvoid f(struct b *b)\n{\n    b->exit(1);\n}\n'),
    ('engine/a.c', OPEN + 'static const char *const names[] = {"a"};\nstatic const int n = 3;\n'),
    ('engine/a.c', OPEN + 'struct s {\n    int n;\n};\nenum e { A, B };\nint f(int n);\n'),
    ('engine/a.c', OPEN + 'struct t;\nstruct t *g(struct t *t);\n'),
    ('engine/a.c', OPEN + 'static const struct {\n    char *s;\n} all[] = {{"a"}, {"b"}};\n'),
    ('engine/a.c', OPEN + 'void f(void)\n{\n    static const int n = 3;\n    int m = n;\n}\n'),
    ('engine/a.h', OPEN + 'extern const struct ops *const all[2];\ntypedef void (*fn)(int n);\n'),
    ('engine/a.c', OPEN + 'static void (*const hooks[])(int a) = {g, h};\n'),
    ('app/a.c', OPEN + 'static int n;\n' + body(80)),
    ('engine/cpu/a.c', OPEN + body(150)),
    ('app/a.c', OPEN + f'bool f({ARGS[:-8]}, struct bn_error *err);\n'),
    ('app/a.c', OPEN + f'void f({ARGS[:-16]}, void (*g)(int, int));\n'),
    ('tests/a.c', OPEN + 'static void ' + 'x' * 60 + '(void **state);\n'),
    ('app/a.c', OPEN + '\n' * 797),
    ('app/a.c', OPEN + '/* 2B4T, &#39; "#12" 1/2 */\nconst char *s = "#12 TODO 2024-01-31";\n'),
    ('app/a_data.h', '/*\n * Generated by x.py.\n */\n' + '/* ' + 'x' * 99 + ' */\n' * 800),
    ('tests/app/a.py', 'text = "turn #1, 2024-01-31"\n'),
    ('app/a.sh', '#!/bin/sh\nset -eu\necho hello\n'),
    ('docs/a.md', 'word ' * 23 + 'words\n'),
    ('docs/a.md', '```\n' + 'x ' * 61 + 'x\n```\n    ' + 'x ' * 61 + 'x\n'),
    ('docs/a.md', '|' + ' cell |' * 20 + '\n' + 'see https://' + 'x' * 120 + '\n'),
    ('tests/app/test_a.py', 'from support.chat_case import ChatCase\nimport unittest\n'),
]

PROTOTYPE = OPEN + 'bool a_run(int n);\n'
DEFINITION = OPEN + 'bool a_run(int n)\n{\n    return n > 0;\n}\n'

# rule, {path: text}, path: exactly this rule reports the tree, once, for this path.
BAD_TREES = [
    ('unique', {'app/a.c': OPEN, 'engine/a.c': OPEN, 'engine/b.c': OPEN}, 'engine/a.c'),
    ('links', {'README.md': '[a](docs/b.md)\n', 'docs/b.md': '[c](c.md)\n'}, 'docs/b.md'),
    ('prototype', {'app/chat/a.h': PROTOTYPE, 'app/a.c': DEFINITION}, 'app/a.c'),
    ('prototype', {'tests/app/a.h': PROTOTYPE, 'tests/a.c': DEFINITION}, 'tests/a.c'),
    ('files-in-folder', {f'app/chat/a{i}.{"ch"[i % 2]}': OPEN for i in range(25)}, 'app/chat/'),
]

# {path: text}: no rule reports the tree.
GOOD_TREES = [
    {'app/a.h': PROTOTYPE, 'app/a.c': DEFINITION, 'tests/fake_a.c': DEFINITION},
    {'app/chat/a.h': PROTOTYPE, 'app/b.c': OPEN + 'static ' + DEFINITION[len(OPEN):]},
    {'app/chat/a.h': OPEN + 'typedef bool (*a_run)(int n);\n', 'app/b.c': DEFINITION},
    {f'app/chat/a{i}.c': OPEN for i in range(24)},
    {f'engine/cpu/x86/a{i}.c': OPEN for i in range(40)},
]


def reported(files, table):
    """(rule, path) of each offence in a tree {path: text}."""
    sources = [Source(path, text) for path, text in files.items()]
    return [(rule, path) for path, _, rule, _ in lint.check(sources, table)]


def failures(table):
    for rule, path, text in BAD:
        got = {name for name, _ in reported({path: text}, table)}
        if got != {rule}:
            yield f'{path}: expected an offence against {rule}, got {sorted(got)}:\n{text[:400]}'
    for path, text in GOOD:
        got = reported({path: text}, table)
        if got:
            yield f'{path}: expected no offence, got {sorted(got)}:\n{text[:400]}'
    for rule, files, path in BAD_TREES:
        got = reported(files, table)
        if got != [(rule, path)]:
            yield f'{sorted(files)}: expected an offence of {path} against {rule}, got {sorted(got)}'
    for files in GOOD_TREES:
        got = reported(files, table)
        if got:
            yield f'{sorted(files)}: expected no offence, got {sorted(got)}'
    bad = {rule for rule, *_ in BAD + BAD_TREES}
    for rule in set(lint_rules.RULES) | set(lint_rules.TREE_RULES):
        if rule not in bad:
            yield f'rule {rule} has no bad snippet'


# Files of a tree with a package's own files, and whether they are checked with git and without it.
WALKED = [('README.md', True, True), ('.ci/run', True, True), ('engine/a.c', True, True),
          ('tests/templates/cases/a.py', False, False), ('.pc/fix/engine/a.c', False, False),
          ('engine/.pc/a.c', False, False), ('debian/README.md', True, False), ('notes.md', True, False),
          ('build-ci/installed/a.md', False, False)]


def walk_failures():
    with tempfile.TemporaryDirectory() as root:
        for path, *_ in WALKED:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8'):
                pass
        for with_git in (False, True):
            if with_git:
                os.mkdir(os.path.join(root, '.git'))
            expected = sorted(row[0] for row in WALKED if row[1 if with_git else 2])
            if lint.walk(root) != expected:
                yield f'git {with_git}: expected the files {expected}, got {lint.walk(root)}'


CYCLE_TABLE = """
[include]
engine/base/: engine/base/
app/low/:     engine/base/ app/low/
app/high/:    engine/base/ app/low/ app/high/
"""

# Name of an offence or None, {path: text}, rows of [cycles]. A file NAME.c calls functions of others
# and defines NAME().
CYCLES = [
    (None, {'app/high/a.c': 'b', 'app/high/b.c': 'c', 'app/high/c.c': 'a', 'app/low/d.c': ''}, ''),
    (None, {'app/high/a.c': 'b c d', 'app/high/b.c': 'c d', 'app/high/c.c': 'd', 'app/high/d.c': ''}, ''),
    ('files', {'app/high/a.c': 'b', 'app/high/b.c': 'c', 'app/high/c.c': 'd', 'app/high/d.c': 'a'}, ''),
    ('files', {'app/high/a.c': 'b', 'app/high/b.c': 'a c', 'app/high/c.c': 'b d', 'app/high/d.c': 'c'}, ''),
    (None, {'app/high/a.c': 'b', 'app/high/b.c': 'c', 'app/high/c.c': 'd', 'app/high/d.c': 'a'},
     'app/high/: 4'),
    (None, {'app/high/a.c': 'b c', 'app/low/b.c': 'c', 'engine/base/c.c': ''}, ''),
    ('upward', {'engine/base/a.c': 'b', 'app/low/b.c': ''}, ''),
    ('upward', {'app/low/a.c': 'b', 'app/high/b.c': ''}, ''),
    (None, {'app/low/a.c': 'b', 'app/high/b.c': ''}, 'app/low/: app/high/'),
    # Two folders without an owner: no call is upward, and yet they depend on each other.
    ('folders', {'tokenizer/a.c': 'b', 'templates/b.c': 'a'}, ''),
]


def compile_tree(root, compiler, files):
    """Objects of a CYCLES tree, as lint_cycles.compiled() returns them."""
    objects = {}
    for path, callees in files.items():
        source = os.path.join(root, path)
        os.makedirs(os.path.dirname(source), exist_ok=True)
        name = os.path.basename(path)[:-2]
        with open(source, 'w', encoding='utf-8') as file:
            for callee in callees.split():
                file.write(f'void {callee}(void);\n')
            calls = ''.join(f'    {callee}();\n' for callee in callees.split())
            file.write(f'void {name}(void);\nvoid {name}(void)\n{{\n{calls}}}\n')
        objects[path] = [source + '.o']
        subprocess.run(compiler + ['-c', '-o', source + '.o', source], check=True)
    return objects


def cycle_failures(compiler):
    if not shutil.which('nm'):
        print('nm is not installed: the rules about cycles are not tested')
        return
    for expected, files, rows in CYCLES:
        with tempfile.TemporaryDirectory() as root:
            symbols = lint_cycles.read_symbols(compile_tree(root, compiler, files))
        table = lint_rules.load_table(CYCLE_TABLE + '[cycles]\n' + rows)
        calls = list(lint_cycles.call_arrows(symbols))
        found = lint_cycles.offences([], calls, table, lint_cycles.Exceptions(table))
        got = [text.partition(':')[0] for text in found]
        if got != ([expected] if expected else []):
            yield f'calls {files} with [cycles] {rows}: expected {expected}, got {got}'
    table = lint_rules.load_table(CYCLE_TABLE + 'app/top/: app/high/api.h')
    call, api = ('app/top/a.c', 'app/low/b.c', ''), ('app/high/api.h', 'app/low/b.h', '')
    for includes, n_upward in (([], 1), ([api], 0)):
        if len(list(lint_cycles.upward_calls([call], includes, table))) != n_upward:
            yield f'a call through {includes}: expected {n_upward} upward calls'
    arrows = [('app/low/a.h', 'app/high/b.h', 'line 1'), ('app/high/b.h', 'app/low/a.h', 'line 1')]
    if not list(lint_cycles.offences(arrows, [], table, lint_cycles.Exceptions(table))):
        yield 'two folders that include each other: expected an offence'


def header_failures(compiler):
    """A header that needs another header, or that cannot be included twice, must be reported."""
    with tempfile.TemporaryDirectory() as root:
        for name, text, fine in [('good.h', '#ifndef G\n#define G\nstruct s {\n};\n#endif\n', True),
                                 ('lean.h', 'size_t f(void);\n', False),
                                 ('twice.h', 'struct s {\n    int n;\n};\n', False)]:
            with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                file.write(text)
            if (lint_headers.compiles(root, compiler, name) == '') != fine:
                yield f'{name}: expected {"no offence" if fine else "an offence"}'


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    found = list(failures(lint.read_table(root)))
    found += list(walk_failures())
    found += list(cycle_failures(compiler)) + list(header_failures(compiler))
    print('\n'.join(found))
    n_bad, n_good = len(BAD) + len(BAD_TREES), len(GOOD) + len(GOOD_TREES)
    print(f'{n_bad} bad snippets, {n_good} good ones, {len(CYCLES)} call graphs, {len(found)} failures')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
