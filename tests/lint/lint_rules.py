"""
The rules of docs/STYLE.md. A rule is a generator of (line, sentence) for one file, or of
(path, line, sentence) for the whole tree. RULES and TREE_RULES list them by name.
"""
import collections
import fnmatch
import os
import re

from lint_source import parameters

MAX_COLUMNS, MAX_PYTHON_COLUMNS = 100, 120
MAX_DOC_COLUMNS = 120
MAX_FILE, WARN_FILE = 800, 450
MAX_HEADER, WARN_HEADER = 250, 200
MAX_FUNCTION, MAX_KERNEL = 80, 150
MAX_FOLDER_FILES = 24  # .c and .h files
MAX_PARAMETERS = 7  # a last parameter "struct bn_error *err" is not counted
MAX_NAME = 32
MAX_TEST_NAME = 60  # the name of a test is a sentence
OPENING = (3, 15)  # at least 3 lines with the delimiters, at most 15 lines of text

LIBRARIES = ('engine/', 'tokenizer/', 'templates/')
KERNELS = ('engine/cpu/', 'engine/cuda/')
# Names from foreign headers, and include guards, which follow the file name.
FOREIGN_NAMES = re.compile(r'_mm|__|pcre2_|PCRE2_|rl_|json_|JSON_|cu(da)?[A-Z]|CU_|programmatic|LLVMFuzzer|'
                           r'v\w+_[sufp]\d+$|[A-Z0-9_]+_H$')


def starts_with(path, prefixes):
    return any(path.startswith(p) for p in prefixes)


def from_root(path):
    return '/' in path and '..' not in path


def load_table(text):
    """
    {'include': {owner: [allowed]}, 'foreign': {...}, 'words': {...}}, one item for each [section].
    A value @NAME is replaced by the values of @NAME in the section [lists].
    """
    table, section = {}, None
    for line in text.split('\n'):
        line = line.split('#')[0].strip()
        if re.fullmatch(r'\[\w+\]', line):
            section = table.setdefault(line[1:-1], {})
        elif line:
            key, value = line.split(':')
            lists = table.get('lists', {})
            section[key.strip()] = [v for word in value.split() for v in lists.get(word, [word])]
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
        for pattern, folders in table['foreign'].items():
            matches = kind == '<' and fnmatch.fnmatchcase(path, pattern)
            if matches and not starts_with(src.path, folders):
                yield line, f'<{path}> is allowed only in: {" ".join(folders)}'


def rule_words(src, table):
    if not src.is_c:
        return
    words = '|'.join(table['words'])
    for n, line in enumerate(src.code.split('\n'), 1):
        for m in re.finditer(rf'(?<![\w.])(?<!->)({words})\b', line):
            folders = table['words'][m.group(1)]
            called = re.match(r'\s*\(', line[m.end():]) or m.group(1) in ('stdout', 'stderr')
            if called and not starts_with(src.path, folders):
                yield n, f'{m.group(1)} is allowed only in: {" ".join(folders)}'


def rule_openmp(src, _table):
    if not src.is_c or starts_with(src.path, ('engine/cpu/', 'app/demo/', 'tests/')):
        return
    for n, line in enumerate(src.code.split('\n'), 1):
        if re.match(r'\s*#\s*pragma\s+omp\b', line) or re.search(r'_Pragma\s*\(\s*"omp', line):
            yield n, 'OpenMP is allowed only in engine/cpu/ and in the training of app/demo/'


def is_mutable(head):
    """Whether a declared variable can be written: the object itself is not const."""
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


def rule_doc_columns(src, table):
    """Tables, lines with a link and code blocks may be longer: they often cannot be broken."""
    if not src.path.endswith('.md') or src.path in table.get('doc_columns', {}):
        return
    fenced = False
    for n, line in enumerate(src.lines, 1):
        fenced ^= line.lstrip().startswith('```')
        is_code = fenced or line.startswith('    ')
        if len(line) > MAX_DOC_COLUMNS and not (is_code or line.startswith('|') or '](' in line or '://' in line):
            yield n, f'{len(line)} columns, {MAX_DOC_COLUMNS} at most'


def rule_test_imports(src, _table):
    if not src.path.startswith('tests/') or not src.path.endswith('.py'):
        return
    for n, line in enumerate(src.lines, 1):
        m = re.match(r'(?:from|import)\s+(?:\w+\.)*(test_\w+)', line)
        if m:
            yield n, f'a test imports {m.group(1)}: move what they share to a support module'


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
        yield 1, f'opening comment of {text} lines, 3 to {OPENING[1]} allowed'


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
            yield n, 'a character outside ASCII: write it as an escape'


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
            yield n, f'"{m.group()}": no tickets, dates or TODO comments'


def rule_shell(src, _table):
    is_shell = src.path.endswith('.sh') or re.match(r'#!.*\b(ba)?sh\b', src.text)
    if is_shell and src.text.startswith('#!') and not re.search(r'^set -eu', src.text, re.M):
        yield 1, 'no `set -eu`'


def tree_rule_unique(sources, _table):
    seen = {}
    for src in sources:
        name = os.path.basename(src.path)
        if not name.endswith(('.c', '.h', '.cu', '.cuh', '.py', '.sh')):
            continue
        if name in seen:
            yield src.path, 1, f'{seen[name]} has the same file name'
        seen.setdefault(name, src.path)


def tree_rule_links(sources, _table):
    paths = {src.path for src in sources}
    for src in sources:
        if not src.path.endswith('.md'):
            continue
        for n, line in enumerate(src.lines, 1):
            for target in re.findall(r'\]\(([^)#:]+\.md)[^)]*\)', line):
                if os.path.normpath(os.path.join(os.path.dirname(src.path), target)) not in paths:
                    yield src.path, n, f'links to {target}, which does not exist'


def function_name(head):
    """The name of the function that a chunk declares or defines, or None for anything else."""
    head = re.sub(r'__attribute__\s*\(\(.*?\)\)', '', head, flags=re.S)
    m = re.search(r'\b([a-z_]\w*)\s*\(', head)
    is_function = m and '=' not in head and not re.match(r'\s*(typedef|static|_Static_assert)\b', head)
    return m.group(1) if is_function else None


def tree_rule_prototype(sources, table):
    """A test may define a function of the product again, to replace it when the test is linked."""
    exceptions = table.get('prototypes', {})
    declared = collections.defaultdict(set)
    for src in sources:
        for chunk in src.chunks() if src.is_header else ():
            name = chunk.body is None and function_name(chunk.head)
            if name:
                declared[name].add(src.path)
    for src in sources:
        if not src.is_c or src.is_header:
            continue
        allowed = [h for owner, headers in exceptions.items() if src.path.startswith(owner) for h in headers]
        for chunk in src.chunks():
            name = chunk.body is not None and function_name(chunk.head)
            for header in sorted(declared.get(name, ())):
                replaces = src.path.startswith('tests/') and not header.startswith('tests/')
                is_near = os.path.dirname(header) == os.path.dirname(src.path)
                if not (is_near or replaces or starts_with(header, allowed)):
                    yield src.path, chunk.line, f'{name} is declared in another folder: {header}'


def tree_rule_folder_files(sources, table):
    exceptions = table.get('folder_files', {})
    folders = collections.Counter(
        os.path.dirname(src.path) + '/' for src in sources if src.path.endswith(('.c', '.h')))
    for folder, n in sorted(folders.items()):
        limit = max([MAX_FOLDER_FILES] + [int(n) for n in exceptions.get(folder, ())])
        if n > limit and not folder.startswith('engine/cpu/'):
            yield folder, 0, f'{n} .c and .h files in one folder, {limit} at most'


RULES = {
    'include': rule_include, 'include-root': rule_include_root, 'foreign': rule_foreign,
    'words': rule_words, 'openmp': rule_openmp, 'mutable': rule_mutable,
    'function-lines': rule_function_lines, 'parameters': rule_parameters,
    'file-lines': rule_file_lines, 'columns': rule_columns, 'names': rule_names,
    'opening': rule_opening, 'blanks': rule_blanks, 'ascii': rule_ascii,
    'tickets': rule_tickets, 'shell': rule_shell, 'doc-columns': rule_doc_columns,
    'test-imports': rule_test_imports,
}
TREE_RULES = {
    'unique': tree_rule_unique, 'links': tree_rule_links, 'prototype': tree_rule_prototype,
    'files-in-folder': tree_rule_folder_files,
}
