#!/usr/bin/env python3
"""Compare the interpreter with jinja2 on random templates.

diff_jinja.py RENDER_CASE [-n COUNT] [-s SEED] [-v]: exit code 0: no difference; 1: differences; 77:
jinja2 is not installed. Skips cases in which jinja2 prints an address or the interpreter reaches a
limit, such as 64-bit integers or the depth, and prints their number.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys

try:
    from jinja_reference import Reference
except ImportError:
    print("jinja2 is not installed: skipped")
    sys.exit(77)

WORDS = ["a", "Abc", "hello world", "", " x ", "A-b c", "ÄÖ ß", "ﬁn ŉ", "日本語 text", "😀!", "ΑΣ ΣΑΣ", "ǅur",
         "it's", 'say "hi"', "a,b,,c", "<b>&'\"", "line1\nline2\n\nline4", "\ttab\x0b", "</think>\n\nso",
         "<think>\nwhy\n</think>x", "{{ 1 }}", "%s and %d", "{} {0} {a}", "12", "-7", "3.5", "1e3", "0x1f", " 42 ",
         "TITLE case Words", "\u00a0nb\u2003sp\u2028", "İI ıi", "x" * 30, "\x00\x7f\x85", "é\u0301", "<|eot_id|>"]
CONTEXT = {
    "s": "Hello World", "u": "ÄﬁΣ ß", "e": "", "sp": "  pad \n", "n": 7, "z": 0, "neg": -3, "f": 2.5, "t": True,
    "no": False, "none_": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "le": [], "mix": [1, "a", None, 2.5, True],
    "d": {"a": 1, "b": "two", "items": 3}, "de": {}, "nest": {"k": {"x": [1, {"y": "z"}]}},
    "rows": [{"n": "x", "v": 3, "on": True}, {"n": "Y", "v": 1, "on": False}, {"n": "x", "v": 2}],
    "pairs": [["a", 1], ["b", 2]], "big": 9007199254740993, "small": 1e-7, "large": 1.5e300,
}
MESSAGES = [{"role": "system", "content": " Be kind. "}, {"role": "user", "content": "Hi {{ 1 }} <|eot_id|>"},
            {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello"}, {"role": "user", "content": "日本?"}]
STRINGS = ["s", "u", "e", "sp"]
NUMBERS = ["n", "z", "neg", "f", "big", "small"]
LISTS = ["l", "ls", "le", "mix", "rows", "pairs", "messages"]
DICTS = ["d", "de", "nest", "rows[0]", "messages[1]"]


class Maker:
    def __init__(self, rng):
        self.r = rng
        self.locals = []
        self.macros = []

    def pick(self, *options):
        return self.r.choice(options)

    def literal(self, text):
        if self.r.random() < 0.2 and "\n" not in text:
            return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'")
        return json.dumps(text, ensure_ascii=self.r.random() < 0.3) if not any(
            ord(c) > 0xffff for c in text) else "'%s'" % text.replace("'", "\\'")

    def word(self):
        return self.literal(self.r.choice(WORDS))

    def small(self):
        return str(self.r.choice([0, 1, 2, 3, -1, -2, 5, 10]))

    def any(self, depth):
        if self.locals and self.r.random() < 0.15:
            return self.r.choice(self.locals)
        return self.pick(self.string, self.string, self.number, self.list, self.dict, self.bool, self.odd)(depth)

    def odd(self, depth):
        return self.pick("undef", "none", "undef.x", "d.missing", "none_", "t", "no", "loop", "range(3)",
                         "d.keys()", "d.values()", "d.items()", "loop.index", "ns", "(1,)", "()", "1.0", "s.nope")

    def wrong(self, depth, right):
        return self.any(depth - 1) if self.r.random() < 0.04 else right(depth - 1)

    def paren(self, text):
        return "(%s)" % text if self.r.random() < 0.6 else text

    def string(self, depth):
        if depth <= 0:
            return self.r.choice(STRINGS) if self.r.random() < 0.5 else self.word()
        s = lambda: self.paren(self.wrong(depth, self.string))
        i = lambda: self.pick(self.small(), "", self.small(), "n", "none")
        kind = self.r.randrange(31)
        if kind == 0:
            return "%s + %s" % (s(), s())
        if kind == 1:
            return "%s ~ %s" % (s(), self.paren(self.any(depth - 1)))
        if kind == 2:
            return "%s[%s:%s%s]" % (s(), i(), i(), self.pick("", ":", ":-1", ":2", ":" + self.small()))
        if kind == 3:
            return "%s[%s]" % (s(), self.small())
        if kind == 4:
            return "%s|%s" % (s(), self.pick("upper", "lower", "title", "capitalize", "trim", "string", "e", "safe",
                                             "forceescape", "urlencode", "reverse", "first", "last", "escape"))
        if kind == 5:
            return "(%s).%s()" % (s(), self.pick("upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip",
                                                 "swapcase", "casefold" if False else "lower"))
        if kind == 6:
            return "(%s).%s(%s)" % (s(), self.pick("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"), self.word())
        if kind == 7:
            return "(%s).replace(%s, %s%s)" % (s(), self.word(), self.word(), self.pick("", ", 1", ", -1", ", 2"))
        if kind == 8:
            return "%s|replace(%s, %s%s)" % (s(), self.word(), self.word(), self.pick("", ", 1", ", count=2"))
        if kind == 9:
            return "%s|join(%s)" % (self.paren(self.wrong(depth, self.list)), self.pick("", self.word(), "', '"))
        if kind == 10:
            return "(%s).join(%s|map('string'))" % (self.word(), self.paren(self.wrong(depth, self.list)))
        if kind == 11:
            return "%s|tojson%s" % (self.paren(self.any(depth - 1)), self.pick(
                "", "(indent=2)", "(indent=0)", "(sort_keys=true)", "(separators=(',', ':'))", "(indent=1, sort_keys=true)",
                "(ensure_ascii=true)", "(indent='--')"))
        if kind == 12:
            return "%s|indent%s" % (s(), self.pick("", "(2)", "(2, true)", "('> ', first=true)", "(1, blank=true)", "(2, true, true)"))
        if kind == 13:
            return "%s if %s else %s" % (s(), self.bool(depth - 1), s())
        if kind == 14:
            return "%s|default(%s%s)" % (self.paren(self.any(depth - 1)), s(), self.pick("", ", true", ", boolean=true"))
        if kind == 15:
            return "%s %% %s" % (self.pick("'%s'", "'%s-%s'", "'%5s|'", "'%-5s|'", "'%d'", "'%.2f'", "'%05d'", "'%x'", "'%r'", "'%+d'",
                                          "'%%'", "'%(a)s'", "'%e'", "'%g'", "'%c'", "'%.3s'", "'%5.1f'", "'%#x'", "'%i'", "'%s %%'", "'%a'"),
                                self.paren(self.any(depth - 1)))
        if kind == 16:
            return "%s|format(%s)" % (self.pick("'%s'", "'%s-%s'", "'%d'", "'%.1f'"), ", ".join(
                self.any(depth - 1) for _ in range(self.r.randrange(3))))
        if kind == 17:
            return "%s.format(%s%s)" % (self.pick(
                "'{}'", "'{} {}'", "'{0}{1}{0}'", "'{:>5}'", "'{:*^9}'", "'{:d}'", "'{:.2f}'", "'{:,}'", "'{!r}'", "'{a}'", "'{0.x}'",
                "'{0[0]}'", "'{{}}'", "'{:05d}'", "'{:x}'", "'{:+}'", "'{:%}'", "'{:e}'", "'{:.3}'", "'{:<{1}}'", "'{:_}'", "'{:b}'",
                "'{:#o}'", "'{:010.3f}'", "'{:g}'", "'{:s}'", "'{:.1%}'", "'{:=+8}'", "'{:08,}'", "'{:05}'", "'{:5c}'", "'{!a:>9}'"), ", ".join(
                    self.any(depth - 1) for _ in range(self.r.randrange(1, 3))), self.pick("", ", a=1", ", a=s"))
        if kind == 18:
            return "(%s).%s(%s%s)" % (s(), self.pick("ljust", "rjust", "center"), self.pick("3", "8", "12", "9"),
                                      self.pick("", ", '*'", ", 'é'"))
        if kind == 19:
            return "(%s).zfill(%s)" % (s(), self.pick("3", "8"))
        if kind == 20:
            return "%s|center(%s)" % (s(), self.pick("5", "12", "13", "width=7"))
        if kind == 21:
            return "%s|truncate(%s)" % (s(), self.pick("5", "8, true", "9, false, '..'", "5, true, '', 0", "length=6, leeway=0"))
        if kind == 22:
            return "%s|string" % self.paren(self.any(depth - 1))
        if kind == 23:
            return "%s * %s" % (s(), self.pick("0", "1", "2", "3", "-1", "true"))
        if kind == 24:
            return "(%s).%s(%s)[%s]" % (s(), self.pick("split", "partition", "rsplit", "rpartition"), self.word(), self.small())
        if kind == 25:
            return "%s.b" % self.r.choice(DICTS)
        if kind == 26:
            return "messages[%s].content" % self.small()
        if kind == 27:
            return "(%s).expandtabs(%s)" % (s(), self.pick("", "4", "1", "0"))
        if kind == 28 and self.macros:
            return self.call(depth)
        if kind == 29:
            return "%s[%s]" % (self.literal("%s"), self.small())
        return self.r.choice(STRINGS)

    def call(self, depth):
        name, params = self.r.choice(self.macros)
        args = [self.any(depth - 1) for _ in range(self.r.randrange(len(params) + 1))]
        for p in params[len(args):]:
            if self.r.random() < 0.3:
                args.append("%s=%s" % (p, self.any(depth - 1)))
        if self.r.random() < 0.05:
            args.append("zz=1")
        return "%s(%s)" % (name, ", ".join(args))

    def number(self, depth):
        if depth <= 0:
            if self.r.random() < 0.5:
                return self.r.choice(NUMBERS)
            return self.pick(self.small(), "2.5", "1e3", "0.1", "1_000", "0x1F", "0b101", "0o17", "1e-7", "123456789", "1e16", "1.0")
        n = lambda: self.paren(self.wrong(depth, self.number))
        kind = self.r.randrange(16)
        if kind < 5:
            return "%s %s %s" % (n(), self.pick("+", "-", "*", "/", "//", "%"), n())
        if kind == 5:
            return "%s ** %s" % (n(), self.pick("0", "1", "2", "3", "-1", "0.5"))
        if kind == 6:
            return "%s%s" % (self.pick("-", "+"), n())
        if kind == 7:
            return "%s|length" % self.paren(self.pick(self.string, self.list, self.dict)(depth - 1))
        if kind == 8:
            return "%s|%s" % (n(), self.pick("abs", "int", "float", "round", "round(1)", "round(2, 'floor')", "round(1, 'ceil')", "round(-1)"))
        if kind == 9:
            return "%s|%s" % (self.paren(self.string(depth - 1)), self.pick(
                "int", "float", "int(default=5)", "int(7, 16)", "int(base=0)", "float(1.5)", "wordcount", "length", "count"))
        if kind == 10:
            return "%s|%s" % (self.paren(self.wrong(depth, self.list)), self.pick("sum", "min", "max", "first", "last", "sum(start=10)"))
        if kind == 11:
            return "(%s).%s(%s)" % (self.string(depth - 1), self.pick("find", "rfind", "index", "count", "rindex"), self.pick(
                self.word(), "'l'", "'', 2", "'o', 3", "'l', -3, -1", "''"))
        if kind == 12:
            return "rows|%s(attribute='v')" % self.pick("sum", "min", "max")
        if kind == 13:
            return "%s[%s]" % (self.pick("l", "range(10)", "range(10, 0, -3)", "mix"), self.small())
        if kind == 14:
            return "(%s).%s(%s)" % (self.pick("l", "mix", "ls", "(1, 2, 1)"), self.pick("count", "index"), self.any(depth - 1))
        return self.r.choice(NUMBERS)

    def list(self, depth):
        if depth <= 0:
            return self.r.choice(LISTS) if self.r.random() < 0.6 else "[%s]" % ", ".join(
                self.pick(self.small(), self.word()) for _ in range(self.r.randrange(4)))
        x = lambda: self.paren(self.wrong(depth, self.list))
        kind = self.r.randrange(26)
        if kind == 0:
            return "[%s]" % ", ".join(self.any(depth - 1) for _ in range(self.r.randrange(4)))
        if kind == 1:
            return "(%s,)" % ", ".join(self.any(depth - 1) for _ in range(self.r.randrange(1, 3)))
        if kind == 2:
            return "%s + %s" % (x(), x())
        if kind == 3:
            return "%s[%s:%s%s]" % (x(), self.pick("", self.small()), self.pick("", self.small()), self.pick("", ":", ":-1", ":2"))
        if kind == 4:
            return "range(%s)" % self.pick("3", "1, 4", "5, 0, -2", "0", "n", "1, n, 2")
        if kind == 5:
            return "%s|map(%s)|list" % (x(), self.pick("'upper'", "'string'", "'int'", "'default', 'D'", "'length'", "'replace', 'a', 'b'",
                                                       "attribute='n'", "attribute='v', default=0", "'trim'", "'nofilter'", "'tojson'", "'round', 1"))
        if kind == 6:
            return "rows|map(attribute='%s')|list" % self.pick("n", "v", "on", "n.0", "missing")
        if kind == 7:
            return "%s|%s(%s)|list" % (x(), self.pick("select", "reject"), self.pick(
                "", "'string'", "'number'", "'equalto', 1", "'in', [1, 'a']", "'defined'", "'odd'", "'gt', 1", "'none'", "'notest'", "'=='"
                ", 'a'"))
        if kind == 8:
            return "rows|%s(%s)|list" % (self.pick("selectattr", "rejectattr"), self.pick(
                "'on'", "'v', 'gt', 1", "'n', 'equalto', 'x'", "'on', 'defined'", "'v', 'odd'", "'n', 'in', ['x']", ""))
        if kind == 9:
            return "%s|sort%s|list" % (x(), self.pick("", "(true)", "(reverse=true)", "(case_sensitive=true)"))
        if kind == 10:
            return "rows|sort(attribute='%s'%s)" % (self.pick("n", "v", "n,v", "v,n", "on"), self.pick("", ", reverse=true", ", case_sensitive=true"))
        if kind == 11:
            return "%s|unique%s|list" % (x(), self.pick("", "(true)", "(case_sensitive=true)"))
        if kind == 12:
            return "rows|unique(attribute='n')|list"
        if kind == 13:
            return "%s|%s|list" % (x(), self.pick("batch(2)", "batch(3, 'f')", "slice(2)", "slice(3, '-')", "batch(1)", "batch(linecount=2)"))
        if kind == 14:
            return "%s|reverse|list" % x()
        if kind == 15:
            return "(%s).split(%s)" % (self.string(depth - 1), self.pick("", self.word(), "none, 1", "' '", "',', 1", "maxsplit=1", "sep='a'"))
        if kind == 16:
            return "(%s).rsplit(%s)" % (self.string(depth - 1), self.pick("", self.word(), "none, 1", "' ', 1"))
        if kind == 17:
            return "(%s).splitlines(%s)" % (self.string(depth - 1), self.pick("", "true", "keepends=true"))
        if kind == 18:
            return "%s|dictsort%s" % (self.paren(self.dict(depth - 1)), self.pick("", "(by='value')", "(true)", "(reverse=true)", "(false, 'value')"))
        if kind == 19:
            return "%s|items|list" % self.paren(self.dict(depth - 1))
        if kind == 20:
            return "(%s).%s()|list" % (self.dict(depth - 1), self.pick("items", "keys", "values"))
        if kind == 21:
            return "%s|list" % self.paren(self.pick(self.string, self.list, self.dict)(depth - 1))
        if kind == 22:
            return "rows|groupby('%s'%s)%s" % (self.pick("n", "v", "on"), self.pick("", ", default=0", ", case_sensitive=true"),
                                               self.pick("", "|map(attribute='grouper')|list", "|map('first')|list", "|map('last')|map('length')|list"))
        if kind == 23:
            return "%s * 2" % x()
        if kind == 24:
            return "(%s).partition(%s)" % (self.string(depth - 1), self.word())
        return self.r.choice(LISTS)

    def dict(self, depth):
        if depth <= 0 or self.r.random() < 0.3:
            return self.r.choice(DICTS)
        kind = self.r.randrange(4)
        if kind == 0:
            return "{%s}" % ", ".join("%s: %s" % (self.pick(self.word(), self.small(), "none", "true", "1.0", "(1, 2)", "'a'", "'b'"), self.any(depth - 1))
                                      for _ in range(self.r.randrange(4)))
        if kind == 1:
            return "dict(%s)" % self.pick("", "a=1", "d", "pairs", "d, c=%s" % self.any(depth - 1), "[('x', 1)]")
        if kind == 2:
            return "(%s).get(%s%s)" % (self.dict(depth - 1), self.pick("'a'", "'k'", "'zz'", "1"), self.pick("", ", {}", ", 'no'"))
        return self.r.choice(DICTS)

    def bool(self, depth):
        if depth <= 0:
            return self.pick("t", "no", "true", "false", "n", "e", "le", "undef", "True", "False")
        kind = self.r.randrange(11)
        a = lambda: self.paren(self.any(depth - 1))
        if kind == 0:
            return "%s %s %s" % (a(), self.pick("==", "!="), a())
        if kind == 1:
            same = self.pick(self.number, self.string, self.list)
            return "%s %s %s" % (self.paren(same(depth - 1)), self.pick("<", "<=", ">", ">="), self.paren(same(depth - 1)))
        if kind == 2:
            return "%s %s %s" % (a(), self.pick("and", "or"), a())
        if kind == 3:
            return "not %s" % a()
        if kind == 4:
            return "%s %s %s" % (self.paren(self.string(depth - 1)), self.pick("in", "not in"), self.paren(self.string(depth - 1)))
        if kind == 5:
            return "%s %s %s" % (a(), self.pick("in", "not in"), self.paren(self.pick(self.list, self.dict)(depth - 1)))
        if kind == 6:
            return "%s is %s%s" % (a(), self.pick("", "not "), self.pick(
                "defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean", "true",
                "false", "odd", "even", "divisibleby 2", "divisibleby(3)", "equalto 1", "eq(1)", "ne 'a'", "in [1, 2]", "in(l)", "lower", "upper",
                "gt 1", "lt(2)", "ge 2", "le 2", "sameas none", "sameas(true)", "callable", "escaped", "nope" if self.r.random() < 0.1 else "defined"))
        if kind == 7:
            return "(%s).%s(%s)" % (self.string(depth - 1), self.pick("startswith", "endswith"), self.pick(self.word(), "'H'", "('a', 'H')", "'l', 2", "'', 20"))
        if kind == 8:
            return "(%s).%s()" % (self.string(depth - 1), self.pick("isdigit", "isalpha", "isalnum", "isspace", "islower", "isupper", "istitle",
                                                                    "isnumeric", "isdecimal", "isascii", "isprintable"))
        if kind == 9:
            return "%s < %s <= %s" % (self.paren(self.number(depth - 1)), self.paren(self.number(depth - 1)), self.paren(self.number(depth - 1)))
        return "%s == %s" % (self.paren(self.dict(depth - 1)), self.paren(self.dict(depth - 1)))

    # ---- statements ----

    def tag(self, inside):
        return "{%%%s %s %s%%}" % (self.pick("", "", "-", "+"), inside, self.pick("", "", "", "-"))

    def text(self):
        return self.pick("", "", "x", "\n", "  ", " text \n", "\n\n  ", "a b\n  ", "{ % }", "{#- note -#}", "{# c #}\n", "  {#+ c -#} \n", "é",
                         "\r\n", "\t", "}} ", "{% raw %}{{ x }} {% endraw %}", "{%- raw -%}  {% if %}\n {%- endraw +%}\n", "\u2003\n ")

    def statements(self, depth, loop):
        return "".join(self.text() + self.statement(depth, loop) for _ in range(self.r.randrange(1, 4))) + self.text()

    def target(self):
        name = self.pick("v1", "v2", "s", "n")
        if name not in self.locals:
            self.locals.append(name)
        return name

    def statement(self, depth, loop):
        kind = self.r.randrange(26) if depth > 0 else self.r.randrange(8)
        body = lambda inner=loop: self.statements(depth - 1, inner)
        if kind < 7:
            return "{{%s%s%s}}" % (self.pick(" ", "- ", "+ "), self.any(3), self.pick(" ", " -", " "))
        if kind == 7:
            return self.tag("set %s = %s" % (self.target(), self.any(3)))
        if kind in (8, 9, 10):
            out = self.tag("if " + self.bool(2)) + body()
            if self.r.random() < 0.4:
                out += self.tag("elif " + self.bool(2)) + body()
            if self.r.random() < 0.5:
                out += self.tag("else") + body()
            return out + self.tag("endif")
        if kind in (11, 12, 13, 14):
            target = self.pick("x", "x", "x, y", "k, v")
            over = self.paren(self.dict(1)) + ".items()" if target == "k, v" else self.wrong(2, self.list)
            if target == "x, y":
                over = self.pick("pairs", "d.items()", "ls|batch(2)", "d|dictsort", self.list(1))
            self.locals += ["x"]
            cond = " if " + self.pick("x", "loop is defined", self.bool(1), "x != 1") if self.r.random() < 0.25 else ""
            out = self.tag("for %s in %s%s" % (target, over, cond)) + body(True)
            out += self.pick("", "{{ loop.%s }}" % self.pick("index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem",
                                                             "nextitem", "cycle('a', 'b')", "changed(x)", "depth", "nope"))
            if self.r.random() < 0.3:
                out += self.tag("else") + body()
            return out + self.tag("endfor")
        if kind == 15 and loop:
            return self.tag("if " + self.bool(1)) + self.tag(self.pick("break", "continue")) + self.tag("endif")
        if kind == 16:
            return self.tag("set %s%s" % (self.target(), self.pick("", " | upper", " | trim | length"))) + body() + self.tag("endset")
        if kind == 17:
            return self.tag("set ns.%s = %s" % (self.pick("a", "b"), self.any(2))) + self.pick("", "{{ ns.a }}")
        if kind == 18:
            name, params = "m%d" % len(self.macros), self.pick([], ["p"], ["p", "q"], ["p", "q", "r"])
            sig = ", ".join(p + self.pick("", "=" + self.any(1)) if i == len(params) - 1 else p for i, p in enumerate(params))
            saved = self.locals
            self.locals = saved + params
            out = self.tag("macro %s(%s)" % (name, sig)) + body(False) + self.pick("", "{{ caller() }}", "{{ varargs }}", "{{ kwargs }}", "{{ p }}") + self.tag("endmacro")
            self.locals = saved
            self.macros.append((name, params))
            return out
        if kind == 19 and self.macros:
            return self.tag("call%s %s" % (self.pick("", "(w)"), self.call(1))) + body(False) + self.tag("endcall")
        if kind == 20:
            return self.tag("filter %s" % self.pick("upper", "trim", "replace('a', 'b')", "indent(2)", "title|length|string", "tojson")) + body() + self.tag("endfilter")
        if kind == 21:
            return self.tag("with %s" % self.pick("w1 = %s" % self.any(2), "x = n, y = x", "")) + body() + self.tag("endwith")
        if kind == 22:
            return self.tag("generation") + body(False) + self.tag("endgeneration")
        if kind == 23:
            return self.tag("set %s, %s = %s" % (self.target(), self.target(), self.pick("1, 2", "pairs[0]", "'ab'", "l", "(s, n)")))
        if kind == 24:
            return "{{ m0 is defined }}{{ strftime_now(%s) }}" % self.pick("'%d %b %Y'", "'%A %j %H:%M:%S %p'", "'%c|%x|%X'", "'%Y-%m-%d %e %y %U %V'", "'%-d %%'")
        if kind == 25 and self.r.random() < 0.3:
            return "{{ raise_exception(%s) }}" % self.string(0)
        return "{{ %s }}" % self.any(2)

    def case(self):
        self.locals, self.macros = [], []
        start = self.pick("", "", "{% set ns = namespace(a=1) %}", "{%- set ns = namespace() -%}\n")
        template = start + self.statements(self.r.choice([0, 0, 0, 1, 1, 2, 3]), False) + self.pick("", "\n", "\n\n", "end")
        if self.r.random() < 0.02:  # broken syntax
            at = self.r.randrange(len(template) + 1)
            template = template[:at] + self.pick("{{", "%}", "{% x %}", "(", "'", "{#", "") + template[at + self.r.randrange(3):]
        return {"template": template or "x", "args": CONTEXT, "messages": MESSAGES, "generation": self.r.random() < 0.5,
                "now": self.r.randrange(0, 2000000000), "bos_token": "<s>"}


def skip(case, expected, result):
    """The reason why a case cannot be compared, or None."""
    if expected is not None and (" at 0x" in expected or "<class '" in expected or "<function" in expected):
        return "prints an address"
    if expected is not None and re.search(r"\d[jJ]\)", expected):
        return "a complex number"
    error = result.get("error", "")
    if expected is not None and "cannot be sliced" in error:
        return "folded"  # jinja2 folds constants, and then a bad slice is undefined instead of an error
    if "takes more than" in error or "64 bits" in error or "nested more than" in error or "is not supported" in error or "complex number" in error:
        return "a limit"
    return None


def run(program, cases):
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([program], input=text.encode(), capture_output=True, env={**os.environ, "TZ": "UTC"})
    if done.returncode != 0:
        print(done.stderr.decode(errors="replace"))
        sys.exit("%s ended with %d after %d cases" % (program, done.returncode, done.stdout.count(b"\n")))
    return [json.loads(line) for line in done.stdout.split(b"\n") if line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-v", action="store_true", help="print all differences, not only ten")
    options = parser.parse_args()
    reference, maker = Reference(), Maker(random.Random(options.s))
    skipped, errors, different, total = 0, 0, 0, 0
    while total < options.n:
        cases = [maker.case() for _ in range(min(500, options.n - total))]
        total += len(cases)
        for case, result in zip(cases, run(options.program, cases)):
            expected, error = reference.render(case)
            if skip(case, expected, result):
                skipped += 1
                continue
            errors += error is not None
            if ("error" in result) if error is not None else result.get("text") == expected:
                continue
            different += 1
            if options.v or different <= 10:
                print("---\n%s\n  expected %r\n  got  %r" % (case["template"], expected if error is None else error,
                                                     result.get("text", result.get("error"))))
    print("%d cases, %d of them errors in both, %d skipped, %d different" % (total, errors, skipped, different))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
