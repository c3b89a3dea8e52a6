"""jinja2 with the configuration of the transformers library for chat templates.

ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks, loop controls, a `generation` tag that
renders its body, tojson = json.dumps, raise_exception, and strftime_now with the time of the case (UTC).
"""
import copy
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render_body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


class Reference:
    def __init__(self):
        self.now = 0
        self.env = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
        self.env.filters["tojson"] = tojson
        self.env.globals["raise_exception"] = raise_exception
        self.env.globals["strftime_now"] = self.strftime_now

    def strftime_now(self, format):
        return datetime.datetime.fromtimestamp(self.now, datetime.timezone.utc).replace(
            tzinfo=None).strftime(format)

    def render(self, case):
        """(text, None) or (None, exception) for a case in the form of render_case.c."""
        self.now = case.get("now", 0)
        variables = {name: case[name] for name in ("bos_token", "eos_token") if case.get(name)}
        variables["messages"] = case.get("messages", [])
        variables["add_generation_prompt"] = bool(case.get("generation"))
        variables.update(copy.deepcopy(case.get("args", {})))  # |indent modifies a list argument
        try:
            return self.env.from_string(case["template"]).render(**variables), None
        except Exception as error:  # every exception is an error of the template
            return None, error
