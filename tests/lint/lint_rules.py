"""
The rules. Each is a generator of (line, sentence) for one file, or of (path, line, sentence) for
the whole tree; RULES and TREE_RULES name them. Limits are those of docs/STYLE.md.
"""
import fnmatch
import os
import re

from lint_source import parameters

MAX_COLUMNS, MAX_PYTHON_COLUMNS = 100, 120
MAX_FILE, WARN_FILE = 800, 300
MAX_HEADER, WARN_HEADER = 250, 120
MAX_FUNCTION, MAX_KERNEL = 80, 150
MAX_PARAMETERS = 7  # the error that comes last is not counted
MAX_NAME = 32
MAX_TEST_NAME = 60  # a test is named for its fact
OPENING = (3, 15)  # lines with their delimiters at least, lines of text at most

LIBRARIES = ('engine/', 'tokenizer/', 'templates/')
KERNELS = ('engine/cpu/', 'engine/cuda/')
# Names that other people's headers, or file names, chose.
FOREIGN_NAMES = re.compile(r'_mm|__|pcre2_|PCRE2_|rl_|json_|JSON_|cu(da)?[A-Z]|CU_|programmatic|LLVMFuzzer|'
                           r'v\w+_[sufp]\d+$|[A-Z0-9_]+_H$')


def starts_with(path, prefixes):
    return any(path.startswith(p) for p in prefixes)


def from_root(path):
    return '/' in path and '..' not in path


def load_table(text):
    """{'include': {owner: [allowed]}, 'foreign': {...}, 'words': {...}}"""
    table, section = {}, None
    for line in text.split('\n'):
        line = line.split('#')[0].strip()
        if re.fullmatch(r'\[\w+\]', line):
            section = table.setdefault(line[1:-1], {})
        elif line:
            key, value = line.split(':')
            section[key.strip()] = value.split()
    return table


def rule_include(src, table):
    owners = [o for o in table['include'] if src.path.startswith(o)]
    if not src.is_c or not owners:
        return
    allowed = table['include'][max(owners, key=len)]
    for line, kind, path in src.includes():
        if kind == '"' and from_root(path) and not starts_with(path, allowed):
            yield line, f'{src.path} may not include "{path}" (tests/lint/include_table.txt)'


def rule_include_root(src, _table):
    if not src.is_c:
        return
    for line, kind, path in src.includes():
        if kind == '"' and not from_root(path):
            yield line, f'write includes from the root, not "{path}"'


def rule_foreign(src, table):
    if not src.is_c:
        return
    for line, kind, path in src.includes():
        for pattern, rooms in table['foreign'].items():
            matches = kind == '<' and fnmatch.fnmatchcase(path, pattern)
            if matches and not starts_with(src.path, rooms):
                yield line, f'<{path}> belongs in {" ".join(rooms)}'


def rule_words(src, table):
    if not src.is_c:
        return
    words = '|'.join(table['words'])
    for n, line in enumerate(src.code.split('\n'), 1):
        for m in re.finditer(rf'(?<![\w.])(?<!->)({words})\b', line):
            rooms = table['words'][m.group(1)]
            called = re.match(r'\s*\(', line[m.end():]) or m.group(1) in ('stdout', 'stderr')
            if called and not starts_with(src.path, rooms):
                yield n, f'{m.group(1)} may stand in: {" ".join(rooms)}'


def rule_openmp(src, _table):
    if not src.is_c or starts_with(src.path, ('engine/cpu/', 'tests/')):
        return
    for n, line in enumerate(src.code.split('\n'), 1):
        if re.match(r'\s*#\s*pragma\s+omp\b', line) or re.search(r'_Pragma\s*\(\s*"omp', line):
            yield n, 'OpenMP belongs in engine/cpu/'


def is_mutable(head):
    """A variable that can be written: no const on the object itself."""
    head = re.sub(r'\[[^\]]*\]', '', head.split('=')[0])
    head = re.sub(r'\b(_Alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)', '', head)
    if re.search(r'\(\s*\*', head):
        return not re.search(r'\(\s*\*\s*const\b', head)
    if '(' in head:
        return False
    after = head[head.rindex('*'):] if '*' in head else head
    return not re.search(r'\bconst\b', after)


def is_variable(chunk):
    head = chunk.head.strip()
    if chunk.body is not None or re.match(r'(typedef|_Static_assert|static_assert|extern)\b', head):
        return False
    head = re.sub(r'\b(struct|union|enum)\b', '', head.split('=')[0])
    return len(re.findall(r'\w+', head)) > 1 or '=' in chunk.head


def rule_mutable(src, _table):
    if not src.is_c or not starts_with(src.path, LIBRARIES):
        return
    for chunk in src.chunks():
        if is_variable(chunk) and is_mutable(chunk.head):
            yield chunk.line, 'mutable variable at file scope'
        for m in re.finditer(r'\b(?:static|_Thread_local)\b([^;{]*)[;{]', chunk.body or ''):
            if not re.match(r'\s*inline\b', m.group(1)) and is_mutable(m.group(1)):
                yield (chunk.body_line + chunk.body.count('\n', 0, m.start()),
                       'mutable static variable in a function')


def rule_function_lines(src, _table):
    if not src.is_c:
        return
    limit = MAX_KERNEL if starts_with(src.path, KERNELS) else MAX_FUNCTION
    for chunk in src.chunks():
        lines = 0 if chunk.body is None else chunk.body.count('\n') + 1
        if lines > limit:
            yield chunk.line, f'function of {lines} lines, {limit} at most'


def rule_parameters(src, _table):
    if not src.is_c:
        return
    for chunk in src.chunks():
        name = re.search(r'(\w+)\s*\(', chunk.head)
        if '=' in chunk.head or name and FOREIGN_NAMES.match(name.group(1)):
            continue
        head = re.sub(r',\s*struct bn_error \*err\s*\)', ')', chunk.head)
        n = parameters(head)
        if n is not None and n > MAX_PARAMETERS:
            yield chunk.line, f'{n} parameters, {MAX_PARAMETERS} at most: make a struct'


def is_generated(src):
    return 'Generated by' in src.text[:200]


def rule_file_lines(src, _table):
    if is_generated(src):
        return
    if src.is_header and len(src.lines) > MAX_HEADER:
        yield MAX_HEADER, f'header of {len(src.lines)} lines, {MAX_HEADER} at most'
    elif len(src.lines) > MAX_FILE and not src.path.endswith('.md'):
        yield MAX_FILE, f'file of {len(src.lines)} lines, {MAX_FILE} at most'


def rule_columns(src, table):
    is_text = src.path.endswith('.md') or src.path in table['text']
    if is_text or is_generated(src):
        return
    limit = MAX_PYTHON_COLUMNS if src.path.endswith('.py') else MAX_COLUMNS
    for n, line in enumerate(src.lines, 1):
        if len(line) > limit:
            yield n, f'{len(line)} columns, {limit} at most'


def rule_names(src, _table):
    if not src.is_c:
        return
    limit = MAX_TEST_NAME if src.path.startswith('tests/') else MAX_NAME
    for n, line in enumerate(src.code.split('\n'), 1):
        if re.match(r'\s*#\s*include\b', line):
            continue
        for name in re.findall(r'[A-Za-z_]\w*', line):
            if len(name) > limit and not FOREIGN_NAMES.match(name):
                yield n, f'{name}: {len(name)} characters, {limit} at most'


def rule_opening(src, _table):
    if not src.is_c:
        return
    m = re.match(r'/\*.*?\*/', src.text, re.S)
    if not m:
        yield 1, 'the file does not open with a comment'
        return
    lines = m.group().count('\n') + 1
    text = sum(1 for line in m.group().split('\n') if line.strip() not in ('/*', '*/', '*'))
    if lines < OPENING[0] or text > OPENING[1]:
        yield 1, f'opening comment of {text} lines: 3 to {OPENING[1]}'


def rule_blanks(src, _table):
    for n, line in enumerate(src.lines, 1):
        if '\t' in line:
            yield n, 'tab'
        if line != line.rstrip():
            yield n, 'trailing space'
    if src.text and not src.text.endswith('\n'):
        yield len(src.lines), 'no newline at the end of the file'


def rule_ascii(src, _table):
    if not src.is_c:
        return
    for n, line in enumerate(src.lines, 1):
        if not line.isascii():
            yield n, 'a character beyond ASCII: write it as an escape'


TICKETS = re.compile(r'\b(TODO|FIXME|XXX|HACK)\b|\b([Ii]ssue|ticket|PR)\s*#?\d+|'
                     r'\b20\d\d-\d\d-\d\d\b')
TICKETS_C = re.compile(TICKETS.pattern + r'|(?<![&"\w])#\d+\b')


def rule_tickets(src, _table):
    if src.path.endswith('.md') or '/lint/' in src.path:
        return
    for n, line in enumerate((src.comments if src.is_c else src.text).split('\n'), 1):
        comment = line if src.is_c else line.partition('# ')[2]
        m = (TICKETS_C if src.is_c else TICKETS).search(comment)
        if m:
            yield n, f'"{m.group()}": no tickets, dates or to-dos'


def rule_shell(src, _table):
    is_shell = src.path.endswith('.sh') or re.match(r'#!.*\b(ba)?sh\b', src.text)
    if is_shell and src.text.startswith('#!') and not re.search(r'^set -eu', src.text, re.M):
        yield 1, 'no `set -eu`'


def tree_rule_unique(sources):
    seen = {}
    for src in sources:
        name = os.path.basename(src.path)
        if not name.endswith(('.c', '.h', '.cu', '.cuh', '.py', '.sh')):
            continue
        if name in seen:
            yield src.path, 1, f'the name is taken by {seen[name]}'
        seen.setdefault(name, src.path)


def tree_rule_links(sources):
    paths = {src.path for src in sources}
    for src in sources:
        if not src.path.endswith('.md'):
            continue
        for n, line in enumerate(src.lines, 1):
            for target in re.findall(r'\]\(([^)#:]+\.md)[^)]*\)', line):
                if os.path.normpath(os.path.join(os.path.dirname(src.path), target)) not in paths:
                    yield src.path, n, f'links to {target}, which does not exist'


RULES = {
    'include': rule_include, 'include-root': rule_include_root, 'foreign': rule_foreign,
    'words': rule_words, 'openmp': rule_openmp, 'mutable': rule_mutable,
    'function-lines': rule_function_lines, 'parameters': rule_parameters,
    'file-lines': rule_file_lines, 'columns': rule_columns, 'names': rule_names,
    'opening': rule_opening, 'blanks': rule_blanks, 'ascii': rule_ascii,
    'tickets': rule_tickets, 'shell': rule_shell,
}
TREE_RULES = {'unique': tree_rule_unique, 'links': tree_rule_links}
