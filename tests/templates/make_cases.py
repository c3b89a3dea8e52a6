#!/usr/bin/env python3
"""Write cases/*.json: templates with the result of jinja2. Run it by hand after adding a case.

CONSTRUCTS has templates for each language construct. Published templates are rendered with several
conversations. DIFFERED has templates for which the interpreter once gave a wrong result.
"""
import json
import os

from diff_jinja import CONTEXT, MESSAGES
from jinja_reference import Reference

HERE = os.path.dirname(os.path.abspath(__file__))

CONSTRUCTS = {
    "output": ["{{ 1 }}", "{{ 'a' 'b' }}", "{{ none }}{{ true }}{{ false }}{{ undef }}", "{{ 1, 2 }}", "{{ }}", "{{ 1", "{{ 1 }", "{{ (1 }}", "{{ 1 2 }}"],
    "if": ["{% if n %}a{% elif s %}b{% else %}c{% endif %}", "{% if z %}a{% elif s %}b{% else %}c{% endif %}", "{% if z %}a{% elif e %}b{% else %}c{% endif %}",
           "{% if n %}{% set x = 1 %}{% endif %}{{ x }}", "{% if n: %}a{% endif %}", "{% if n %}", "{% endif %}", "{% if %}a{% endif %}"],
    "for": ["{% for x in l %}{{ x }},{% endfor %}", "{% for x in le %}x{% else %}none{% endfor %}", "{% for x in undef %}x{% else %}none{% endfor %}",
            "{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }},{% endfor %}", "{% for a, b in pairs %}{{ a }}={{ b }};{% endfor %}",
            "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "{% for c in 'aß😀' %}{{ c }}.{% endfor %}",
            "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{{ y }}{% set y = x %}{% endfor %}{{ y }}",
            "{% for x in n %}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l recursive_ %}{% endfor %}",
            "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}"],
    "loop": ["{% for x in ls %}{{ loop.%s }} {%% endfor %%}".replace("%%", "%") % f if False else "{% for x in ls %}{{ loop." + f + " }} {% endfor %}" for f in (
        "index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem", "depth", "depth0", "cycle('a', 'b', 'c')",
        "cycle()", "changed(x|upper)", "nope")] + ["{% for x in ls %}{{ loop }}{% endfor %}", "{{ loop }}", "{% for x in ls|map('upper') %}{{ loop.last }}{{ loop.length }}{% endfor %}"],
    "jumps": ["{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
              "{% for x in l %}{% continue %}{% else %}e{% endfor %}", "{% for x in l %}{% break %}{% else %}e{% endfor %}", "{% break %}",
              "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}"],
    "set": ["{% set x = 1 %}{{ x }}", "{% set x, y = 1, 2 %}{{ y }}{{ x }}", "{% set (x, y) = pairs[0] %}{{ x }}", "{% set x = 1, 2 %}{{ x }}", "{% set x %}a{{ n }}{% endset %}{{ x }}",
            "{% set x | upper %}a{{ n }}{% endset %}{{ x }}", "{% set x | trim | length %} ab {% endset %}{{ x + 1 }}", "{% set x, y = l %}", "{% set x, y = 1 %}", "{% set 1 = 2 %}",
            "{% set x.y = 2 %}", "{% set d.y = 2 %}", "{% set true = 2 %}", "{% set x = n %}{% set x = x + 1 %}{{ x }}", "{% set x %}", "{% set x = %}"],
    "namespace": ["{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}", "{% set ns = namespace({'a': 2}, b=3) %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
                  "{% set ns = namespace() %}{{ ns.c is defined }}{{ ns }}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}", "{% set ns = namespace(1) %}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.b }}"],
    "macro": ["{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(b=5, a=4) }}|{{ m() }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(7) }}", "{% macro m() %}{{ n }}{% set n = 1 %}{% endmacro %}{{ m() }}{{ n }}",
              "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m() %}{% endmacro %}{{ m(1) }}", "{% macro m() %}{% endmacro %}{{ m(x=1) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
              "{% macro m(x) %}{% if x %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{{ m() }}{% macro m() %}{% endmacro %}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m }}",
              "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(caller) %}{{ caller }}{% endmacro %}", "{% set a %}{% macro m() %}in{% endmacro %}{{ m() }}{% endset %}{{ a }}"],
    "call": ["{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}b{{ n }}{% endcall %}", "{% macro m() %}{{ caller('x', 2) }}{% endmacro %}{% call(a, b=1, c=3) m() %}{{ a }}{{ b }}{{ c }}{% endcall %}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
             "{% call n %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}"],
    "blocks": ["{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aa{% endfilter %}", "{% filter length %}a{% endfilter %}", "{% filter %}a{% endfilter %}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}",
               "{% generation %}a{{ s }}{% set q = 1 %}{% endgeneration %}{{ q }}", "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% generation %}", "{% print 1, s %}", "{% unknown %}", "{% %}", "{% 'x' %}"],
    "whitespace": ["  {%- if n %}  \n x \n {%- endif -%}  \n y", " {% if n %}\n  a\n {% endif %}\n b\n", " {%+ if n %}\n  a\n {%+ endif +%}\n b\n\n", "a  {{- n -}}  b", "a\n  {{ n }}\n b", "a {#- c -#} b", "a\n  {# c #}\n b", "a\n  {#+ c +#}\n b", "{{ n }}\n", "{{ n }}\n\n", "x\r\ny\rz\n",
                   "  {% set x = 1 %}  {% set y = 2 %}\n  z", "\t{% if n %}\tx{% endif %}", "\u2003{%- if n -%}\u00a0x{% endif %}", "a\n{%- raw -%} {{ x }} {%- endraw -%}\nb", "{% raw %}{{ x }}{% if %}{# #}{% endraw %}", "  {% raw %}\n  {% endraw %}\n x", "{% raw %}", "{% raw %}x", "{% raw -%} x {% endraw %}y", "{# c", "{#", "{#}x#}y"],
    "literals": ["{{ 'a\\n\\t\\\\\\'\\\"b' }}", '{{ "\\x41\\u00e9\\U0001f600\\101\\0" == "Aé😀A\\0" }}', "{{ '\\q\\é' }}", "{{ '\\x4' }}", "{{ 'a\\\nb' }}", "{{ 1_000 }}{{ 0x1F }}{{ 0o17 }}{{ 0b101 }}{{ 00 }}", "{{ 1.5 }}{{ 1e3 }}{{ 1.5E-2 }}{{ 1e100 }}", "{{ 5.684341886080802e-14 }} {{ 2.0 ** -1017 }} {{ 2.0 ** -140 }} {{ 0.5 }}", "{{ 1.0 }}{{ 100000000000000000.0 }}{{ 1e16 }}{{ 123456789012345.6 }}{{ 0.0001 }}{{ 0.00001 }}{{ -0.0 }}", "{{ [1, 'a', [none,],] }}{{ [] }}", "{{ {'a': 1, 2: [3], none: true,} }}{{ {} }}", "{{ {1: 'a', 1.0: 'b', true: 'c'} }}",
                 "{{ (1,) }}{{ () }}{{ (1, 2) }}{{ (1) }}", "{{ {[]: 1} }}", "{{ True }}{{ False }}{{ None }}", "{{ \"it's\" }}{{ ['it\\'s', 'say \"', '\\'\"', '\\n\\x07é\\u2028'] }}", "{{ 'a }}", "{{ 1__0 }}", "{{ 007 }}", "{{ [1, 2 }}", "{{ [1 2] }}", "{{ @ }}"],
    "arithmetic": ["{{ 1 + 2 * 3 - 4 }}", "{{ 7 / 2 }}{{ 6 / 2 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }}", "{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7.5 % 2 }} {{ 5.5 % -2 }}", "{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2.0 ** 0.5 }}", "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 0 ** -1 }}", "{{ 0.1 + 0.2 }}", "{{ 1 + 1.0 }}{{ true + 1 }}",
                   "{{ 'a' + 'b' }}{{ [1] + [2] }}{{ (1,) + (2,) }}", "{{ 'ab' * 2 }}{{ 2 * [1] }}{{ 'a' * -1 }}", "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ [1] + (2,) }}", "{{ -s }}", "{{ - 3 }}{{ + 3 }}{{ --3 }}{{ -true }}", "{{ undef + 1 }}", "{{ 'a' + undef }}", "{{ 'a' ~ undef ~ 1 ~ none ~ 1.5 ~ [1] }}", "{{ 1 ~ 2 + 3 }}", "{{ 9007199254740993 / 1 }}{{ big + 1 }}{{ 9223372036854775807 }}", "{{ 1e308 * 10 }}{{ -1e308 * 10 }}", "{{ 3 - -2 }}{{ 10 - 2 - 3 }}{{ 100 / 10 / 5 }}"],
    "compare": ["{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == 1.0 }}{{ true == 1 }}{{ 'a' == 'a' }}", "{{ 'a' < 'b' }}{{ 'B' < 'a' }}{{ 'é' > 'z' }}", "{{ [1, 2] < [1, 3] }}{{ (1,) < (1, 2) }}{{ [1] == (1,) }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ undef < 1 }}", "{{ undef == undef }}{{ undef == none }}{{ undef != 1 }}", "{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}", "{{ big == big + 0.0 }}{{ big < 9007199254740992.0 }}", "{{ 1 in l }}{{ 9 not in l }}{{ 'a' in d }}{{ 'ell' in s }}{{ '' in s }}", "{{ 1 in s }}", "{{ 1 in n }}", "{{ 1 in undef }}", "{{ [] in d }}", "{{ not 1 == 2 }}{{ not not s }}", "{{ 1 and 'a' }}{{ 0 or 'b' }}{{ none and x.y }}{{ e or le or 'z' }}", "{{ 1 if n }}{{ 1 if z }}{{ 1 if z else 2 if z else 3 }}", "{{ (1 if z).x }}", "{{ 1 is eq 1 and 2 is gt 1 }}"],
    "lookup": ["{{ d.a }}{{ d['b'] }}{{ d['items'] }}", "{{ d.items }}" if False else "{{ d.items() }}", "{{ d.keys() }}{{ d.values() }}", "{{ nest.k.x[1].y }}{{ nest['k']['x'][1]['y'] }}", "{{ l[0] }}{{ l[-1] }}{{ l.1 }}{{ l[9] }}", "{{ s[0] }}{{ s[-1] }}{{ u[1] }}{{ s[99] }}", "{{ s.x }}{{ n.x }}", "{{ s.x.y }}", "{{ undef.x }}", "{{ undef['x'] }}", "{{ d.zz.y }}", "{{ none.x }}{{ none['x'] }}", "{{ d[none] }}{{ d[[]] }}", "{{ l['a'] }}{{ l[1.5] }}{{ l[true] }}", "{{ s.__class__ }}{{ s.__class__.x }}", "{{ l.append(1) }}", "{{ l.append }}{{ d.update is defined }}", "{{ d.pop('a') }}", "{{ range(5)[1] }}{{ range(5)[-1] }}{{ range(5)[9] }}",
               "{{ messages[0].role }}{{ messages[0]['content'] }}{{ messages[-1].content }}", "{{ l[1, 2] }}", "{{ l[] }}", "{{ s. }}"],
    "slice": ["{{ l[1:] }}{{ l[:1] }}{{ l[::-1] }}{{ l[::2] }}{{ l[-2:] }}{{ l[5:] }}{{ l[2:1] }}", "{{ s[1:3] }}{{ s[::-1] }}{{ s[-3:] }}{{ s[:-3] }}{{ s[3:0:-2] }}{{ u[1:4] }}{{ u[::-1] }}", "{{ (1, 2, 3)[1:] }}{{ range(10)[2:8:3] }}{{ range(10)[::-1] }}", "{{ l[none:none] }}{{ l[true:] }}", "{{ l[::0] }}", "{{ l['a':] }}", "{{ d[1:] }}", "{{ n[1:] }}", "{{ undef[1:] }}", "{{ l[1:2, 0] }}", "{{ messages[1:]|length }}", "{{ l[10000000000:] }}{{ l[:-10000000000] }}"],
    "tests": ["{{ %s is defined }}{{ %s is undefined }}{{ %s is none }}{{ %s is string }}{{ %s is number }}{{ %s is integer }}{{ %s is float }}{{ %s is mapping }}{{ %s is sequence }}{{ %s is iterable }}{{ %s is boolean }}{{ %s is true }}{{ %s is false }}{{ %s is callable }}".replace("%s", v)
              for v in ("s", "n", "f", "t", "no", "none", "l", "(1,)", "d", "undef", "d.items()", "range(2)", "s.upper", "l|map('int')", "namespace()")] + [
        "{{ 3 is odd }}{{ 3 is even }}{{ 6 is divisibleby 3 }}{{ 6 is divisibleby(4) }}{{ 2.0 is even }}", "{{ 's' is odd }}", "{{ 1 is equalto 1 }}{{ 1 is eq 2 }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 1 is le 1 }}{{ 1 is gt 2 }}{{ 1 is ge 1 }}", "{{ 1 is sameas 1 }}{{ none is sameas none }}{{ l is sameas l }}{{ [] is sameas [] }}", "{{ 1 is in l }}{{ 9 is not in l }}", "{{ 'abc' is lower }}{{ 'ABC' is upper }}{{ 'aB' is lower }}{{ '1' is upper }}", "{{ 'upper' is filter }}{{ 'odd' is test }}{{ 'zz' is filter }}", "{{ s is nope }}", "{{ s is nope if z else 1 }}", "{% if z %}{{ s is nope }}{% endif %}ok", "{{ s is defined is string }}", "{{ s is not defined }}", "{{ (s|e) is escaped }}{{ s is escaped }}", "{{ 3 is divisibleby }}"],
    "text_filters": ["{{ 'hELLO wORLD-it\\'s (ok)'|%s }}|{{ 'ßﬁ ΑΣ ǆ İ'|%s }}|{{ 12|%s }}|{{ undef|%s }}".replace("%s", f) for f in ("upper", "lower", "title", "capitalize", "trim", "string", "e", "safe", "escape", "forceescape", "wordcount", "urlencode", "center(30)", "reverse")] + [
        "{{ '  x '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'a'|trim(1) }}", "{{ 'aaa'|replace('a', 'b', 2) }}{{ 'aaa'|replace('', '-') }}{{ 'aé'|replace('é', '') }}{{ 123|replace(2, 'x') }}", "{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent(1, blank=true) }}|{{ 'a\\nb'|indent('>') }}|{{ ''|indent }}", "{{ 'hello big world'|truncate(9) }}|{{ 'hello big world'|truncate(9, true) }}|{{ 'hello big world'|truncate(7, false, '') }}|{{ 'hello'|truncate(3) }}|{{ 'hello'|truncate(2) }}", "{{ '%s-%d-%5.1f'|format('a', 3, 2.25) }}{{ '%(a)s'|format(a=1) }}{{ '%s'|format }}", "{{ {'a': 'b c', 'd': 'é/'}|urlencode }}{{ 'a b/é?'|urlencode }}", "{{ ('<'|safe) + '<' }}{{ '<' + ('&'|e) }}{{ ('<'|e)|e }}{{ ('<'|e) ~ '<' }}{{ ['<'|e] }}", "{{ s|nofilter }}", "{{ s|nofilter if z else 2 }}", "{{ s|upper(1) }}", "{{ s|replace('a') }}", "{{ s|indent(wide=1) }}", "{{ s| }}", "{{ s|1 }}"],
    "number_filters": ["{{ '42'|int }}{{ ' -7 '|int }}{{ '3.9'|int }}{{ 'x'|int }}{{ 'x'|int(5) }}{{ '1f'|int(0, 16) }}{{ '0x1f'|int(base=0) }}{{ 3.99|int }}{{ none|int }}{{ true|int }}{{ '1_0'|int }}{{ '1e3'|int }}{{ ''|int }}{{ [1]|int }}{{ '٣'|int }}", "{{ '1.5'|float }}{{ 'x'|float }}{{ 'x'|float(2) }}{{ 3|float }}{{ '1e3'|float }}{{ 'inf'|float }}{{ '-nan'|float }}{{ ' 2 '|float }}", "{{ 2.5|round }}{{ 3.5|round }}{{ 2.567|round(2) }}{{ 2.5|round(0, 'ceil') }}{{ 2.5|round(method='floor') }}{{ 7|round }}{{ 1234|round(-2) }}{{ 1250|round(-2) }}{{ 2.675|round(2) }}{{ 12345.678|round(-2) }}", "{{ 1|round(0, 'x') }}", "{{ 'a'|round }}", "{{ -3|abs }}{{ -2.5|abs }}{{ true|abs }}", "{{ 'a'|abs }}", "{{ undef|int }}", "{{ undef|float }}", "{{ undef|default }}|{{ undef|default(1) }}{{ none|default(1) }}{{ none|default(1, true) }}{{ ''|d('x', boolean=true) }}{{ 0|default(2) }}", "{{ undef.x|default(1) }}", "{{ d|attr('items') is callable }}{{ d|attr('a') is defined }}{{ s|attr('upper')() }}"],
    "tojson": ["{{ %s|tojson }}" % v for v in ("s", "none", "true", "1.5", "big", "1e16", "l", "(1, 2)", "d", "nest", "mix", "'a\"\\\\\\n\\t\\x00\\x1f\\x7fé😀</>&\\u2028'", "undef", "range(2)", "{1: 2, none: 3, true: 4, 1.5: 5}", "{(1,): 2}", "d.items()", "'inf'|float", "[]", "{}")] + [
        "{{ nest|tojson(indent=%s) }}" % v for v in ("2", "0", "none", "'\\t'", "-1")] + ["{{ d|tojson(sort_keys=true) }}{{ {'b': 1, 'a': {'d': 1, 'c': 2}}|tojson(sort_keys=true, indent=1) }}", "{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}", "{{ d|tojson(separators=(',', ':')) }}", "{{ 'é😀\\x7f'|tojson(ensure_ascii=true) }}", "{{ [[], {}]|tojson(indent=2) }}", "{{ d|tojson(true, 1, (';', '='), true) }}", "{{ d|tojson(nope=1) }}"],
    "sequence_filters": ["{{ l|%s }}|{{ ls|%s }}|{{ le|%s }}|{{ s|%s }}|{{ d|%s }}|{{ undef|%s }}".replace("%s", f) for f in ("length", "count", "first", "last", "join", "join('-')", "list", "sort", "reverse|list", "unique|list", "min", "max", "batch(2)|list", "slice(2)|list")] + [
        "{{ n|length }}", "{{ n|first }}", "{{ n|list }}", "{{ mix|sort }}", "{{ mix|join(', ') }}{{ rows|join(',', attribute='n') }}", "{{ ls|sort(reverse=true) }}{{ ls|sort(case_sensitive=true) }}{{ rows|sort(attribute='v')|map(attribute='v')|list }}{{ rows|sort(attribute='n,v')|map(attribute='v')|list }}{{ rows|sort(true, attribute='n')|map(attribute='v')|list }}", "{{ l|sum }}{{ l|sum(start=10) }}{{ rows|sum(attribute='v') }}{{ le|sum }}{{ [0.1, 0.2]|sum }}", "{{ ls|sum }}", "{{ [[1], [2]]|sum(start=[]) }}", "{{ rows|min(attribute='v') }}{{ rows|max(attribute='n') }}{{ ['b', 'A']|min }}{{ ['b', 'A']|min(case_sensitive=true) }}", "{{ l|batch(2, 'x')|list }}{{ l|slice(2, 'x')|list }}{{ l|batch(0)|list }}", "{{ l|slice(0)|list }}", "{{ d|dictsort }}", "{{ {'b': 1, 'A': 2, 'c': 0}|dictsort }}{{ {'b': 1, 'A': 2}|dictsort(true) }}{{ {'b': 1, 'A': 2}|dictsort(by='value') }}{{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}", "{{ d|dictsort(by='x') }}", "{{ l|dictsort }}", "{{ d|items|list }}{{ undef|items|list }}", "{{ l|items|list }}", "{% for g, i in rows|groupby('n') %}{{ g }}:{{ i|length }};{% endfor %}{% for g in rows|groupby('n') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}{{ rows|groupby('on', default='?')|map('first')|list }}" if False else "{% for g, i in rows|groupby('n') %}{{ g }}:{{ i|length }};{% endfor %}{% for g in rows|groupby('n') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}", "{{ rows|groupby('v')|list }}", "{{ ['a', 'A', 'b']|unique|list }}{{ ['a', 'A']|unique(true)|list }}{{ rows|unique(attribute='n')|list }}", "{{ [[1], [1]]|unique|list }}", "{{ s|reverse }}{{ n|reverse }}"],
    "lazy_filters": ["{{ ls|map('upper')|list }}{{ ls|map('replace', 'a', 'x')|join }}{{ rows|map(attribute='n')|list }}{{ rows|map(attribute='zz', default='-')|list }}{{ rows|map(attribute='n.0')|list }}{{ pairs|map(attribute=0)|list }}", "{{ ls|map('nofilter')|list }}", "{{ le|map('nofilter')|list }}", "{{ ls|map|list }}", "{{ ls|map(attribute='a', zz=1)|list }}", "{{ mix|select|list }}{{ mix|select('string')|list }}{{ l|select('gt', 1)|list }}{{ mix|reject|list }}{{ mix|reject('none')|list }}", "{{ l|select('notest')|list }}", "{{ rows|selectattr('on')|list|length }}{{ rows|selectattr('v', 'gt', 1)|map(attribute='v')|list }}{{ rows|rejectattr('on')|list|length }}{{ rows|rejectattr('on', 'defined')|list|length }}", "{{ rows|selectattr|list }}", "{% set g = l|map('string') %}{{ g|join }}{{ g|join }}", "{% set g = l|select %}{{ g|first }}{{ g|first }}{{ g|list }}", "{{ (l|map('int'))|length }}", "{{ (l|map('int'))[0] is defined }}", "{{ l|map('x') is defined }}", "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list }}", "{{ messages|map(attribute='role')|join(',') }}"],
    "string_methods": ["{{ 'Hello wORLD ß'.%s }}|{{ ' aXa '.%s }}|{{ ''.%s }}".replace("%s", m) for m in ("upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "split()", "split('l')", "split('l', 1)", "rsplit('l', 1)", "splitlines()", "startswith('H')", "endswith('ß')", "find('o')", "rfind('o')", "count('l')", "isalpha()", "isdigit()", "isspace()", "isupper()", "islower()", "istitle()", "isalnum()", "isascii()", "partition('l')", "rpartition('l')", "replace('l', 'L')", "zfill(8)", "ljust(8, '.')", "rjust(8)", "center(8)", "removeprefix('H')", "removesuffix('ß')", "join(['a', 'b'])", "expandtabs()")] + [
        "{{ ' a  b '.split(' ') }}{{ ' a  b '.split(none, 1) }}{{ ' a  b '.rsplit(none, 1) }}{{ 'a,b'.split(sep=',', maxsplit=0) }}", "{{ 'a'.split('') }}", "{{ 'xaxbx'.strip('x') }}{{ 'abc'.lstrip('ab') }}{{ 'abc'.rstrip('cb') }}", "{{ 'a\\nb\\r\\nc\\x0bd\\u2028e'.splitlines() }}{{ 'a\\n'.splitlines(true) }}", "{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith('b', 0, 2) }}", "{{ 'abc'.startswith(['a']) }}", "{{ 'abc'.find('c', -1) }}{{ 'éàc'.find('c') }}{{ 'aaa'.count('') }}{{ 'abc'.find('', 9) }}", "{{ 'abc'.index('z') }}", "{{ 'abc'.index('c') }}", "{{ ','.join([1]) }}", "{{ ','.join('abc') }}", "{{ 'a'.replace('a') }}", "{{ 'a'.nope() }}", "{{ 'a'.upper(1) }}", "{{ 'aΣ ΑΣ'.lower() }}{{ 'ŉﬁ'.upper() }}{{ 'ǆ'.title() }}{{ 'İ'.lower()|length }}", "{{ 'a'.encode }}" if False else "{{ 'a' is string }}"],
    "format": ["{{ '%s %r %d %i %5d|%-5d|%05d %+d %x %X %#x %o %e %E %f %.2f %g %G %c %c %%' % ('a', 'b', 3, 4.9, 5, 6, -7, 8, 255, 255, 255, 8, 1234.5, 0.00012, 1.5, 2.345, 1e-7, 1e20, 65, 'z') }}", "{{ '%s' % none }}{{ '%s' % [1] }}{{ '%s' % (1,) }}{{ 'a' % [] }}", "{{ '%s' % () }}", "{{ '%s' % (1, 2) }}", "{{ '%d' % 'a' }}", "{{ '%q' % 1 }}", "{{ '%' % 1 }}", "{{ '%(a)s %(b)s' % d }}", "{{ '%(zz)s' % d }}", "{{ '%*d|%-*d|%.*f' % (5, 1, 5, 2, 1, 2.55) }}", "{{ '%5s|%-5s|%.2s|%5.1s|' % ('é', 'é', 'abc', 'abc') }}", "{{ '%.5d %+.3d %#.4x' % (42, 7, 255) }}",
               "{{ '{} {}'.format(1, 'a') }}{{ '{1}{0}'.format(1, 2) }}{{ '{a}'.format(a=3) }}{{ '{{}}'.format() }}", "{{ '{0.a} {0[b]}'.format(d) }}{{ '{0[1]}'.format(l) }}", "{{ '{:5}|{:<5}|{:>5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd', 'e') }}", "{{ '{:5}|{:<5}|{:05d}|{:+}|{: }|{:,}|{:_}|{:x}|{:#b}|{:o}|{:=+8}'.format(1, 2, 3, 4, 5, 1234567, 1234567, 255, 5, 8, 9) }}", "{{ '{:.2f} {:10.3f}| {:e} {:g} {:%} {:.1%} {:.3} {:08.2f} {:,.2f}'.format(1.005, 2.5, 12345.678, 1e-5, 0.25, 0.123, 123.456, -1.5, 1234567.891) }}", "{{ '{!r} {!s}'.format('a', 'b') }}", "{{ '{:{}}|'.format('a', 5) }}", "{{ '{}'.format() }}", "{{ '{} {0}'.format(1) }}", "{{ '{'.format(1) }}", "{{ '}'.format(1) }}", "{{ '{:d}'.format('a') }}", "{{ '{:d}'.format(1.5) }}", "{{ '{:5}'.format(none) }}", "{{ '{a}'.format(1) }}", "{{ '{:.3}{:.1}'.format('abcdef', 'xyz') }}{{ '{:5}'.format(true) }}{{ '{}'.format(true) }}"],
    "other_methods": ["{{ d.get('a') }}{{ d.get('z') }}{{ d.get('z', 5) }}{{ d.items()|list }}{{ d.keys()|list }}{{ d.values()|list }}{{ d.copy() == d }}", "{{ d.get() }}", "{{ d.get([]) }}", "{{ l.index(1) }}{{ l.count(9) }}{{ (1, 1).count(1) }}", "{{ l.index(9) }}", "{{ l.copy() }}{{ range(3).index(2) }}"],
    "functions": ["{{ range(3)|list }}{{ range(1, 7, 2)|list }}{{ range(3, 0, -1)|list }}{{ range(0) }}{{ range(1, 2) }}", "{{ range() }}", "{{ range('a') }}", "{{ range(1, 2, 0) }}", "{{ range(1000000) }}", "{{ range(1.5) }}", "{{ dict(a=1, b=2) }}{{ dict([('a', 1)]) }}{{ dict(d, z=1) }}{{ dict() }}", "{{ dict(1) }}", "{{ dict([1]) }}", "{% set j = joiner('; ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}", "{{ cycler() }}", "{{ raise_exception('no ' ~ n) }}", "{{ raise_exception() }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %A %b %B %d %e %j %p %I %y %U %W %w %u %V %G %g %C %D %F %T %R %r %c %x %X %h %n%t%% %Z%z %f') }}", "{{ strftime_now('%-d %-m %-H') }}", "{{ strftime_now('%_m|%05d|%^a|%#p|%-_5H|%3j|%Ey|%Od|%_3Om|%^b %') }}", "{{ strftime_now(1) }}", "{{ s() }}", "{{ undef() }}", "{{ none() }}", "{{ 's'.upper()() }}"],
    "arguments": ["{{ '{}{}'.format(*[1, 2]) }}{{ dict(**{'a': 1}) }}", "{{ '{}'.format(*1) }}", "{{ dict(**1) }}", "{{ dict(a=1, a=2) }}", "{{ dict(a=1, 2) }}", "{{ range(*l, 1) }}", "{{ range(3,)|list }}", "{{ range(,) }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], **{'b': 2}) }}"],
    "scopes": ["{% for x in l %}{{ s }}{% endfor %}{% set s = 1 %}", "{{ s }}{% for x in l %}{{ s }}{% endfor %}{% set s = 1 %}", "{% set s %}{{ s }}!{% endset %}{{ s }}", "{% if t %}{% set s = 1 %}{% endif %}{{ s }}", "{% if z %}{% set s = 1 %}{% endif %}{{ s }}", "{% if z %}{% set s = 1 %}{% else %}{% set s = 2 %}{% endif %}{{ s }}", "{% for x in l %}{{ s }}{% set s = x %}{{ s }}{% endfor %}{{ s }}", "{% set q = 1 %}{% for x in l %}{{ q }}{% set q = x %}{{ q }}{% endfor %}{{ q }}", "{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}", "{% for x in l %}{% for y in l %}{{ s }}{% endfor %}{% set s = 1 %}{% endfor %}", "{% macro m() %}{{ s }}{% set s = 1 %}{% endmacro %}{{ m() }}", "{% if z %}{% set s = 1 %}{% elif z %}{% set s = 2 %}{% else %}{% set s = 3 %}{% endif %}{% macro m() %}{{ s }}{% endmacro %}{{ m() }}", "{% with s = 1 %}{{ s }}{% set s = 2 %}{{ s }}{% endwith %}{{ s }}", "{% set messages = messages[1:] %}{{ messages|length }}", "{{ bos_token }}{{ eos_token is defined }}{{ add_generation_prompt }}{{ tools is defined }}"],
    "comments": ["a{# b #}c", "a{# {{ x }} {% if %} #}c", "{# a #}{# b #}"],
}

DIFFERED = [
    "{% set n = (s[:0] ~ 'nan')|float %}{% for k, g in [{'a': n}, {'a': n}, {'a': 1}]|groupby('a') %}{{ k }}{{ g|length }};{% endfor %}{{ [n, 1, n].count(n) }}{{ [1, n].index(n) }}",
    "{% set i = (s[:0] ~ 'inf')|float %}{{ 0.0 ** -i }}", "{{ 0.0 ** -f }}",
    "{{ ('<%s %r %a>'|safe) % ('<', '<', 'é<') }}{{ ('%5r|'|safe) % ('<',) }}{{ '<%r' % ('<',) }}",
    "{{ 5e24|round(-25) }}|{{ -5e24|round(-25) }}|{{ 5.0|round(-1) }}|{{ 50000.0|round(-5) }}|{{ 50000.5|round(-5) }}|{{ 4e24|round(-25) }}|{{ 6.5|round(-2) }}",
    "{% set n = (s[:0] ~ 'nan')|float %}{% set x = [n] %}{{ [n] == [n] }}{{ x == x }}{{ {1: n} == {1: n} }}{{ n == n }}{{ [n, 1] < [n, 2] }}{{ n in x }}",
    "{{ '%a|%4a' % ('é', '\u4e2d\U0001f600') }}{{ '{!a:>9}'.format('ß') }}{{ '{!a}'.format([d, 'é']) }}",
    "{{ '{:05}|{:05.1}|{:*<05}|{:>05}'.format('ab', 'cd', 'e', 'f') }}", "{{ '{:=5}'.format('ab') }}",
    "{{ '{:c}|{:5c}|{:<5c}|{:05c}'.format(233, 65, 66, 67) }}", "{{ '{:+c}'.format(65) }}", "{{ '{:c}'.format(-1) }}",
    "{{ dict(undef) }}", "{% set ns = namespace(undef) %}",
    "{% filter title|length %}a b{% endfilter %}", "{% set s %}{{ s|tojson }}{% endset %}", "{% set s | length %}{{ s }}{% endset %}{{ s }}", "{{ dict(d, c=(sp|e)[9:1:-1]) }}", "{{ {'a': ('x'|e).ljust(3, '*')} }}",
    "{{ mix|truncate(5, true, '', 0) }}", "{{ le|slice(3)|list|truncate(5) }}", "{{ ('<b>'*5)|safe|truncate(7, true, '<', 0)|escape }}", "{{ '<b> <b> <b>'|truncate(7, end='<'|safe, leeway=0) }}", "{% for x in l %}{{ loop }}{% endfor %}", "{{ d.values() in {} }}", "{{ d.items() in {} }}", "{{ ' \\x7f'|tojson(ensure_ascii=true) }}",
    "{{ ' Be kind. '.rsplit(none, 1) }}{{ ' Be kind. '.split(none, 1) }}", "x{#", "x{% raw %}", "{%+ for k, v in pairs %}{{ u }}{% endfor %}{% set u = undef %}", "{{ ('ab'|safe)|list }}",
    "{% for x, y in pairs if x %}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}", "{{ 410 / -4806808695 }}", "{{ '{:_b} {:_x} {:_o} {:_d}'.format(930, 1048576, 4096, 1234567) }}",
    "{% set r = {range(3): 1} %}{{ r[range(3)] }}{{ r[range(0, 3)] }}{{ r[range(4)] }}|{{ {range(0): 1}[range(5, 5)] }}{{ {range(0, 1): 1}[range(0, 5, 7)] }}",
    "{% set a = 1000 %}{{ a is sameas a }}{{ big is sameas big }}{{ f is sameas f }}{{ n is sameas f }}{{ t is sameas 1 }}{{ 1 is sameas 1.0 }}", "{% set a = large * large - large * large %}{{ a }}{{ a in [a] }}{{ a is sameas a }}{{ a == a }}",
    "{{ '5'|int(0, 37) }}{{ '5'|int(0, 1) }}{{ '5.9'|int(0, -3) }}{{ 'x'|int(7, 37) }}{{ 'inf'|int(8, 40) }}", "{% for x in [1] %}{{ loop is callable }}{% endfor %}",
    "{{ [('5'|safe).zfill(3), ('5'|safe).zfill(1), ('a\\tb'|safe).expandtabs(), '5'.zfill(2)] }}", "{{ '1e٣'|float }} {{ '1e-٣'|float }} {{ '1e1_٠'|float }} {{ '1e_1'|float }} {{ '1e٣_'|float }} {{ '1._5'|float }} {{ '1.5_'|float }} {{ '1._e5'|float }}",
    "{{ {}.keys() == {}.items() }}{{ {('a', 1): 0}.keys() == {'a': 1}.items() }}{{ {'a': 1}.items() == {('a', 1): 0}.keys() }}{{ {'a': 1}.items() == {('a', 2): 0}.keys() }}{{ d.keys() == d.items() }}{{ {}.values() == {}.keys() }}{{ {}.items() == {}.values() }}",
    "{{ d.items() == {'b': 'two', 'a': 1.0, 'items': 3}.items() }}{{ d.items() == {'b': 'two', 'a': 2, 'items': 3}.items() }}{{ {'a': []}.items() == {'a': []}.items() }}{{ {'a': 1}.keys() == {'a': []}.items() }}", "{{ {'a': []}.items() == {'a': 1}.keys() }}",
    "{{ range(3).index(1, 0, 2) }}", "{{ range(3).index(1) }}{{ (1, 2).index(2, 0, 2) }}", "{% set a = large * large - large * large %}{{ '%E %F %G %e' % (a, a, a, a) }} {{ '{:E} {:F} {:G} {:%}'.format(a, a, a, a) }}",
]

SYSTEMS = [None, "You are brief.", ""]
BODIES = ["hi", "", "  two\n\nlines  \n", "Ünï ﬁ 日本 😀", "<|eot_id|><|im_end|> {{ 7 * 7 }} {% if %}", "<think>\nwhy\n</think>\n\nanswer", "a</think>b</think>c"]
TOOLS = [{"type": "function", "function": {"name": "get", "description": "say \"<|im_end|>\"", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}]
TOOL_TALK = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, "é\n"], "y": None}}}]},
    {"role": "tool", "content": "42"}, {"role": "assistant", "content": "done", "reasoning_content": "why"}, {"role": "user", "content": "b"}]


def talk(system, body, turns):
    messages = [] if system is None else [{"role": "system", "content": system}]
    return messages + [{"role": ("user", "assistant")[i % 2], "content": body + (str(i) if i else "")} for i in range(turns)]


def published():
    for name in sorted(n for n in os.listdir(os.path.join(HERE, "published")) if n.endswith(".jinja")):
        with open(os.path.join(HERE, "published", name), encoding="utf-8", newline="") as file:
            source = file.read()
        k = 0
        for system in SYSTEMS:
            for body in BODIES:
                k += 1
                args = [{}, {"enable_thinking": True}, {"enable_thinking": False}][k % 3]
                yield name, {"template": source, "messages": talk(system, body, (1, 3, 5)[k % 3 if k % 2 else (k + 1) % 3]),
                             "args": args, "generation": k % 4 != 0}
        for args in ({}, {"tools": TOOLS}, {"tools": TOOLS, "tools_in_user_message": False, "date_string": "1 May"}):
            yield name, {"template": source, "messages": TOOL_TALK, "args": args, "generation": True}
        yield name, {"template": source, "messages": [], "generation": True}


def main():
    reference = Reference()

    def finish(case, shared):
        expected, error = reference.render({**shared, **case})
        return {**case, **({"want": expected} if error is None else {"fails": type(error).__name__})}

    def write(name, shared, cases):
        path = os.path.join(HERE, "cases", name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            lines = ",\n".join("  " + json.dumps(finish(case, shared), ensure_ascii=True) for case in cases)
            file.write('{"shared": %s,\n "cases": [\n%s\n]}\n' % (json.dumps(shared), lines))
        print(name, len(cases))

    context = {"args": CONTEXT, "messages": MESSAGES, "now": 1709210096, "bos_token": "<s>", "eos_token": "</s>"}
    for name, templates in CONSTRUCTS.items():
        write(name, context, [{"template": template} for template in templates])
    write("once_different", context, [{"template": template} for template in DIFFERED])
    by_file = {}
    for name, case in published():
        by_file.setdefault(name, []).append(case)
    for name, cases in by_file.items():
        shared = {"template": cases[0]["template"], "now": 1709210096, "bos_token": "<s>", "eos_token": "</s>"}
        write(os.path.splitext(name)[0], shared, [{k: v for k, v in case.items() if k != "template"} for case in cases])


if __name__ == "__main__":
    main()
