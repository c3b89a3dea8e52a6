#!/usr/bin/env python3
"""
lint_cycles.py ROOT [BUILD]: the dependencies between files and folders of the product have no cycles.
BUILD is a configured and compiled build directory, ROOT/build by default. Exits 0 without an offence,
1 with one, 77 (skipped) where the object files or `nm` are missing.

A dependency is one of two arrows:
  include    a file has #include "PATH" of another file. Read from the source text.
  call       an object file uses a symbol that the object file of another source defines. `nm` reads the
             symbols of every object that compile_commands.json lists, so the arrows are those the linker
             resolves: direct calls, functions whose address is taken, and data tables. A call through a
             function pointer adds no arrow. A call of an inline function of a header counts as its include.
             Code that this build leaves out (another architecture, CUDA without nvcc) is not counted.

A unit is an OWNER of the section [include] in include_table.txt: a folder, or files of one folder with a
rule of their own. Three offences:
  upward     a call into a folder from which [include] lets the caller include nothing, not even indirectly.
  folders    units of two or more folders depend on each other in a circle, by includes and calls together.
  files      more than three source files of one folder call each other in a circle. Counted is the group
             in which every file reaches every other one, even if its shortest circles have two files.

The section [cycles] of the table lists the exceptions.
"""
import collections
import json
import os
import shutil
import subprocess
import sys

from lint import read, read_table, walk

PRODUCT = ('app/', 'engine/', 'templates/', 'tokenizer/')
MAX_FILES = 3  # files of one folder that may call each other in a circle
SKIPPED = 77


def unit_of(path, table):
    """The most specific owner of the path, or its folder where no owner is listed."""
    owners = [owner for owner in table['include'] if path.startswith(owner)]
    return max(owners, key=len) if owners else os.path.dirname(path) + '/'


def folder_of(path):
    return path[:path.rindex('/') + 1]


def groups(arrows):
    """
    Sets of two or more nodes that all reach each other: the strongly connected components of
    {node: {nodes}}, by Tarjan's algorithm without recursion.
    """
    order, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(arrows):
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(sorted(arrows[root])))]
        while path:
            node, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    group, stack = stack[at:], stack[:at]
                    on_stack.difference_update(group)
                    if len(group) > 1:
                        found.append(sorted(group))
            elif target not in order:
                order[target] = low[target] = len(order)
                stack.append(target)
                on_stack.add(target)
                path.append((target, iter(sorted(arrows.get(target, ())))))
            elif target in on_stack:
                low[node] = min(low[node], order[target])
    return sorted(found)


def include_arrows(sources):
    """(from, to, reason) for each include between the given files."""
    paths = {src.path for src in sources}
    for src in sources:
        for line, kind, path in src.includes():
            if kind == '"' and path in paths:
                yield src.path, path, f'line {line} includes it'


def call_arrows(symbols):
    """(from, to, reason) for symbols = {source: (defined, undefined)}."""
    homes = collections.defaultdict(set)
    for source, (defined, _) in symbols.items():
        for name in defined:
            homes[name].add(source)
    for source, (defined, undefined) in symbols.items():
        for name in undefined - defined:
            for home in homes.get(name, ()):
                if home != source:
                    yield source, home, f'uses {name}'


def visible_folders(unit, table, includes):
    """Folders of the headers that a unit may include, and of the headers that these include in turn."""
    allowed = table['include'][unit]
    targets = collections.defaultdict(set)
    for source, target, _ in includes:
        if not source.endswith('.c'):
            targets[source].add(target)
    headers = {path for arrow in includes for path in arrow[:2] if not path.endswith('.c')}
    open_files = [path for path in headers if path.startswith(tuple(allowed))]
    reached = set(open_files)
    while open_files:
        more = targets[open_files.pop()] - reached
        reached |= more
        open_files += more
    return {folder_of(path) for path in reached} | {folder_of(entry) for entry in allowed}


def upward_calls(calls, includes, table):
    """Calls of files from whose folder the caller can include nothing, not even indirectly."""
    visible = {unit: visible_folders(unit, table, includes) for unit in table['include']}
    for arrow in calls:
        source, target = arrow[:2]
        unit = unit_of(source, table)
        if unit in visible and folder_of(source) != folder_of(target) and folder_of(target) not in visible[unit]:
            yield arrow


def show(arrows):
    """One line for each pair of files, with the first three reasons."""
    reasons = collections.defaultdict(list)
    for source, target, reason in arrows:
        reasons[source, target].append(reason)
    for (source, target), texts in sorted(reasons.items()):
        more = f' and {len(texts) - 3} more' if len(texts) > 3 else ''
        yield f'    {source} -> {target}: {", ".join(sorted(texts)[:3])}{more}'


class Exceptions:
    """[cycles]: UNIT: units whose arrows are not counted; FOLDER: a number of files."""

    def __init__(self, table):
        self.rows = {(key, value) for key, values in table.get('cycles', {}).items() for value in values}
        self.used = set()

    def has(self, key, value):
        row = (key, value)
        if row in self.rows:
            self.used.add(row)
        return row in self.rows

    def max_files(self, folder):
        return max([MAX_FILES] + [int(v) for k, v in self.rows if k == folder and v.isdigit()])

    def use_files(self, folder):
        self.used.update(row for row in self.rows if row[0] == folder and row[1].isdigit())

    def unused(self):
        return sorted(self.rows - self.used)


def offences(includes, calls, table, exceptions):
    """One text for each offence. An arrow is (from, to, reason)."""
    upward = [a for a in upward_calls(calls, includes, table)
              if not exceptions.has(unit_of(a[0], table), unit_of(a[1], table))]
    if upward:
        yield 'upward: include_table.txt allows no call in these directions\n' + '\n'.join(show(upward))

    between = collections.defaultdict(list)
    units = collections.defaultdict(set)
    for arrow in includes + calls:
        pair = unit_of(arrow[0], table), unit_of(arrow[1], table)
        if pair[0] != pair[1]:
            between[pair].append(arrow)
            units[pair[0]].add(pair[1])
    for pair in sorted(between):
        if exceptions.has(*pair):
            units[pair[0]].discard(pair[1])
    for group in groups(units):
        if len({folder_of(unit) for unit in group}) > 1:
            pairs = [p for p in sorted(between) if p[0] in group and p[1] in units[p[0]] & set(group)]
            lines = [f'  {p[0]} -> {p[1]}\n' + '\n'.join(list(show(between[p]))[:5]) for p in pairs]
            yield 'folders: a circle of ' + ', '.join(group) + '\n' + '\n'.join(lines)

    inside = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, target, _ in calls:
        if folder_of(source) == folder_of(target):
            inside[folder_of(source)][source].add(target)
    for folder, files in sorted(inside.items()):
        for group in groups(files):
            if len(group) > MAX_FILES:
                exceptions.use_files(folder)
            if len(group) > exceptions.max_files(folder):
                lines = show(a for a in calls if a[0] in group and a[1] in group)
                names = ', '.join(os.path.basename(path) for path in group)
                yield f'files: a circle of {len(group)} files in {folder}: {names}\n' + '\n'.join(lines)


def compiled(root, build):
    """{source: [its object files]} for sources of the product."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    objects = collections.defaultdict(list)
    for command in commands:
        source = os.path.relpath(os.path.join(command['directory'], command['file']), root)
        if source.startswith(PRODUCT):
            objects[source].append(os.path.join(command['directory'], command['output']))
    return objects


def read_symbols(objects):
    """{source: (defined, undefined)} from `nm`, whose POSIX format is "FILE: NAME TYPE ..."."""
    source_of = {path: source for source, paths in objects.items() for path in paths}
    done = subprocess.run(['nm', '-A', '-P', '-g', *source_of], stdout=subprocess.PIPE, text=True, check=True)
    symbols = {source: (set(), set()) for source in objects}
    for line in done.stdout.splitlines():
        path, _, rest = line.partition(': ')
        name, kind = rest.split()[:2]
        symbols[source_of[path]][kind in 'Uwv'].add(name)
    return symbols


def main():
    root = os.path.realpath(sys.argv[1])
    build = os.path.realpath(sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, 'build'))
    if not shutil.which('nm'):
        print('skipped: nm is not installed (package binutils)')
        return SKIPPED
    if not os.path.exists(os.path.join(build, 'compile_commands.json')):
        print(f'skipped: {build} is not a build directory (meson setup {build})')
        return SKIPPED
    objects = compiled(root, build)
    missing = [path for paths in objects.values() for path in paths if not os.path.exists(path)]
    if missing or not objects:
        print(f'skipped: {build} is not compiled (meson compile -C {build}); missing: {missing[:3]}')
        return SKIPPED
    table = read_table(root)
    exceptions = Exceptions(table)
    sources = [read(root, p) for p in walk(root) if p.startswith(PRODUCT)]
    includes = list(include_arrows([src for src in sources if src.is_c]))
    calls = list(call_arrows(read_symbols(objects)))
    found = list(offences(includes, calls, table, exceptions))
    print('\n'.join(found))
    for key, value in exceptions.unused():
        print(f'note: exception [cycles] {key}: {value} is not needed any more')
    print(f'{len(objects)} sources, {len(includes)} includes, {len(calls)} calls, {len(found)} offences')
    return 1 if found or not calls else 0


if __name__ == '__main__':
    sys.exit(main())
