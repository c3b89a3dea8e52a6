"""
A source file, prepared for the rules: raw lines, code without comments and strings, comments alone,
and the declarations at file scope (functions, prototypes, variables).

This is not a C parser. It assumes clang-format's layout and balanced braces outside the preprocessor.
"""
import re

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    """Replace every character except newlines by a space."""
    return re.sub(r'[^\n]', ' ', text)


class Chunk:
    """A declaration or a function at file scope."""

    def __init__(self, line, head, body_line=0, body=None):
        self.line = line            # first line, from 1
        self.head = head            # text before a function's body; a declaration without its braces
        self.body_line = body_line  # line of the opening brace
        self.body = body            # text in braces, or None for a declaration


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split('\n')
        if self.lines and self.lines[-1] == '':
            self.lines.pop()
        self.is_c = path.endswith(('.c', '.h', '.cu', '.cuh'))
        self.is_header = path.endswith(('.h', '.cuh'))
        self.code = self.comments = ''
        if self.is_c:
            self._split()

    def _split(self):
        code, comments, at = [], [], 0
        for m in TOKEN.finditer(self.text):
            between, token = self.text[at:m.start()], m.group()
            code.append(between)
            comments.append(blank(between))
            is_comment = token[0] == '/'
            inner = blank(token) if is_comment else token[0] + blank(token[1:-1]) + token[-1]
            code.append(inner)
            comments.append(token if is_comment else blank(token))
            at = m.end()
        code.append(self.text[at:])
        self.code = ''.join(code)
        self.comments = ''.join(comments)
        joined = re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda m: blank(m.group()), self.code,
                        flags=re.M)
        self.plain = re.sub(r'extern\s+"[^"]*"\s*\{', lambda m: blank(m.group()), joined)

    def includes(self):
        """(line, '<' or '"', path) of each #include."""
        for n, line in enumerate(self.lines, 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if m:
                yield n, m.group(1), m.group(2)

    def chunks(self):
        """Yield the declarations and functions at file scope, in order."""
        text, at, start, depth, parens, open_at = self.plain, 0, 0, 0, 0, None
        while at < len(text):
            c = text[at]
            if c in '([':
                parens += 1
            elif c in ')]':
                parens -= 1
            elif c == '{':
                if depth == 0:
                    open_at = at
                depth += 1
            elif c == '}':
                depth -= 1
                if depth == 0 and self._ends_function(text[start:open_at]):
                    yield self._chunk(start, open_at, at)
                    start, open_at = at + 1, None
            elif c == ';' and depth == 0 and parens == 0:
                yield self._chunk(start, open_at, at)
                start, open_at = at + 1, None
            at += 1

    @staticmethod
    def _ends_function(head):
        head = re.sub(r'__attribute__\s*\(\(.*?\)\)', '', head, flags=re.S)
        return '=' not in head and head.rstrip().endswith(')')

    def _chunk(self, start, open_at, end):
        text = self.plain
        while start < end and text[start].isspace():
            start += 1
        line = text.count('\n', 0, start) + 1
        if text[end] == ';':
            return Chunk(line, without_braces(text[start:end]))
        body_line = text.count('\n', 0, open_at) + 1
        return Chunk(line, text[start:open_at], body_line, text[open_at:end + 1])


def without_braces(text):
    """`static struct { int n; } x = {{1}}` -> `static struct  x = `"""
    n = 1
    while n:
        text, n = re.subn(r'\{[^{}]*\}', '', text)
    return text


def parameters(head):
    """Number of parameters in the first pair of parentheses, or None if there is no such pair."""
    head = re.sub(r'__attribute__\s*\(\(.*?\)\)', '', head, flags=re.S)
    m = re.search(r'\b[A-Za-z_]\w*\s*\(', head)
    if not m:
        return None
    depth, commas, inside = 0, 0, ''
    for c in head[m.end() - 1:]:
        depth += c in '(['
        depth -= c in ')]'
        if depth == 0:
            break
        commas += c == ',' and depth == 1
        inside += c
    inside = inside[1:].strip()
    return 0 if inside in ('', 'void') else commas + 1
