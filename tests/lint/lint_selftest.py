#!/usr/bin/env python3
"""
lint_selftest.py COMPILER...: every rule refuses its bad snippets and lets its good ones pass, and
no rule is without one. A rule that cannot fail would be found here.
"""
import os
import sys
import tempfile

import lint
import lint_headers
import lint_rules
from lint_source import Source

OPEN = '/*\n * A snippet.\n */\n'
ARGS = ', '.join(f'int a{i}' for i in range(8))


def body(n):
    return 'void f(void)\n{\n' + '    g();\n' * (n - 2) + '}\n'


# rule, path, text: refused by exactly that rule.
BAD = [
    ('include', 'engine/base/a.c', OPEN + '#include "engine/gguf/gguf.h"\n'),
    ('include', 'engine/gguf/a.c', OPEN + '#include "engine/model/model.h"\n'),
    ('include', 'engine/model/a.c', OPEN + '#include "engine/backend/backend.h"\n'),
    ('include', 'engine/cpu/a.c', OPEN + '#include "engine/cuda/cuda_backend.h"\n'),
    ('include', 'engine/cpu/a.c', OPEN + '#include "engine/gguf/gguf.h"\n'),
    ('include', 'engine/cuda/a.cu', OPEN + '#include "engine/cpu/kernels.h"\n'),
    ('include', 'engine/session.c', OPEN + '#include "engine/model/model.h"\n'),
    ('include', 'engine/sampler.c', OPEN + '#include "engine/session.h"\n'),
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
]

# path, text: refused by nothing.
GOOD = [
    ('engine/gguf/a.c', OPEN + '#include "engine/base/error.h"\n#include <string.h>\n'),
    ('engine/cpu/a.c', OPEN + '#include "engine/backend/backend.h"\n#include <omp.h>\n'),
    ('engine/cpu/x86/a.c', OPEN + '#include <immintrin.h>\n'),
    ('engine/engine.c', OPEN + '#include "engine/model/model.h"\n'),
    ('tokenizer/vocab/vocab_gguf.c', OPEN + '#include "engine/file.h"\n'),
    ('tokenizer/bpe/pretok.c', OPEN + '#include <pcre2.h>\n'),
    ('app/terminal/ui_full_screen.c', OPEN + '#include <ncurses.h>\n'),
    ('app/common/paths.c', OPEN + 'void f(void)\n{\n    g(getenv("X"));\n}\n'),
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
]


def refused(path, text, table):
    return {rule for _, _, rule, _ in lint.check([Source(path, text)], table)}


def failures(table):
    for rule, path, text in BAD:
        got = refused(path, text, table)
        if got != {rule}:
            yield f'{path} should be refused by {rule}, was by {sorted(got)}:\n{text[:400]}'
    for path, text in GOOD:
        got = refused(path, text, table)
        if got:
            yield f'{path} should pass, was refused by {sorted(got)}:\n{text[:400]}'
    twins = [Source(p, OPEN) for p in ('app/a.c', 'engine/a.c', 'engine/b.c')]
    if [r for _, _, r, _ in lint.check(twins, table)] != ['unique']:
        yield 'two files of one name should be refused once'
    pages = [Source('README.md', '[a](docs/b.md)\n'), Source('docs/b.md', '[c](c.md)\n')]
    if [(p, r) for p, _, r, _ in lint.check(pages, table)] != [('docs/b.md', 'links')]:
        yield 'the link to a page that is not there should be refused, and no other'
    for rule in set(lint_rules.RULES) - {rule for rule, _, _ in BAD}:
        yield f'rule {rule} has no bad snippet'


def header_failures(compiler):
    """Headers that lean on their includer, or that cannot stand twice, are seen."""
    with tempfile.TemporaryDirectory() as root:
        for name, text, fine in [('good.h', '#ifndef G\n#define G\nstruct s {\n};\n#endif\n', True),
                                 ('lean.h', 'size_t f(void);\n', False),
                                 ('twice.h', 'struct s {\n    int n;\n};\n', False)]:
            with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                file.write(text)
            if (lint_headers.compiles(root, compiler, name) == '') != fine:
                yield f'{name} should {"compile" if fine else "be refused"}'


def main():
    found = list(failures(lint.read_table())) + list(header_failures(sys.argv[1:]))
    print('\n'.join(found))
    print(f'{len(BAD)} bad snippets, {len(GOOD)} good ones, {len(found)} surprises')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
