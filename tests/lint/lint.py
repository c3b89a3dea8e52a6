#!/usr/bin/env python3
"""
lint.py ROOT: check the tree against docs/STYLE.md. Prints PATH:LINE: RULE: SENTENCE for each
offence, and a note for each file over the preferred length. Exits 1 if there is an offence.

Source and build files are checked. Test data, pictures, build directories and hidden folders are skipped.
Without git the tree may be that of a package, with folders and files of its own. Then only what is in OWN is
checked at the top.
"""
import os
import sys

import lint_rules
from lint_source import Source

SOURCES = ('.c', '.h', '.cu', '.cuh', '.py', '.sh', '.md', 'meson.build', 'meson_options.txt',
           'include_table.txt')
SCRIPTS = ('.ci/run',)
OWN = ('.ci', 'CONTRIBUTING.md', 'README.md', 'app', 'docs', 'engine', 'meson.build', 'meson_options.txt',
       'templates', 'tests', 'tokenizer')
# Test inputs, which must keep their exact bytes.
DATA = ('tests/fuzz/seeds/', 'tests/golden/')


def walk(root):
    """Sorted paths, relative to the root, of the files that the rules check."""
    found = []
    in_git = os.path.exists(os.path.join(root, '.git'))  # a folder, or a file in a linked worktree
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if n not in ('__pycache__', 'cases', 'seeds') and
                    (n == '.ci' or not n.startswith('.')) and
                    not (folder == root and n.startswith('build')) and  # as .gitignore: build-ci/installed, too
                    not os.path.exists(os.path.join(folder, n, 'meson-private'))]
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), root)
            if not in_git and path.split(os.sep)[0] not in OWN:
                continue
            if (path.endswith(SOURCES) or path in SCRIPTS) and not path.startswith(DATA):
                found.append(path)
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return Source(path, file.read())


def check(sources, table):
    """Every offence: (path, line, rule, sentence)."""
    for src in sources:
        for name, rule in lint_rules.RULES.items():
            for line, sentence in rule(src, table):
                yield src.path, line, name, sentence
    for name, rule in lint_rules.TREE_RULES.items():
        for path, line, sentence in rule(sources, table):
            yield path, line, name, sentence


def long_files(sources):
    for src in sources:
        limit = lint_rules.WARN_HEADER if src.is_header else lint_rules.WARN_FILE
        if len(src.lines) > limit and not src.path.endswith('.md'):
            yield len(src.lines), src.path


def read_table(root):
    with open(os.path.join(root, 'tests/lint/include_table.txt'), encoding='utf-8') as file:
        return lint_rules.load_table(file.read())


def main():
    root = sys.argv[1]
    sources = [read(root, path) for path in walk(root)]
    n_offences = 0
    for path, line, rule, sentence in check(sources, read_table(root)):
        print(f'{path}:{line}: {rule}: {sentence}')
        n_offences += 1
    for n, path in sorted(long_files(sources), reverse=True):
        print(f'note: {path} has {n} lines, more than preferred; consider splitting it')
    print(f'{len(sources)} files, {n_offences} offences')
    return 1 if n_offences or not sources else 0


if __name__ == '__main__':
    sys.exit(main())
