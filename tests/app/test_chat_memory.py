#!/usr/bin/env python3
"""
test_chat_memory.py CHAT MAKE_MODEL [EVERY]: one allocation of a whole run fails. The program must either do all of
its work, or exit with an error and a message. It never crashes, and never leaves out a part silently.

Each run fails another allocation: every EVERY-th one, by default so many that a scenario has about 60 runs. With
bitnet-chat-fake the answers are scripted; with bitnet-chat the engine runs, too.
"""
import json
import os
import subprocess
import sys
import unittest

from support.chat_case import ChatCase
from support.program_case import NAME, PROGRAM, main, preload
from support.terminal_case import PAINTERS, TerminalCase

EVERY = int(sys.argv.pop(3)) if len(sys.argv) > 3 and sys.argv[3].isdigit() else 0
RUNS = 60
TIMES = {'prefill_s', 'decode_s', 'prefill_tokens_per_s', 'decode_tokens_per_s', 'first_token_s', 'seed', 'created',
         'updated', 'time', 'token_gap_p50_s', 'token_gap_p95_s', 'token_gap_p99_s'}


def without_times(text):
    """JSON text without the keys that differ between two runs; other text is returned as it is."""
    def clean(value):
        if isinstance(value, dict):
            return {key: None if key in TIMES else clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value
    try:
        return [clean(json.loads(line)) for line in text.splitlines()]
    except ValueError:
        pass
    try:
        return clean(json.loads(text))
    except ValueError:
        return text


class MemoryCase(ChatCase):
    def run_failing(self, words, stdin, number):
        """One run in a new home. Returns exit status, output, messages, files, and the numbers of the report."""
        report = self.path('report')
        if os.path.exists(report):
            os.unlink(report)
        env = {**self.env, 'LD_PRELOAD': preload('fail_alloc'), 'FAIL_ALLOC_REPORT': report,
               'FAIL_ALLOC': str(number)}
        done = subprocess.run([PROGRAM, self.model, *words], input=stdin, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300, check=False, cwd=self.work)
        files = {}
        for folder, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as file:
                    files[name] = without_times(file.read())
                os.unlink(path)
        n_calls, n_left = 0, 0
        if os.path.exists(report):
            with open(report, encoding='utf-8') as file:
                n_calls, n_left = map(int, file.readlines()[-1].split())
        out, err = done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
        return done.returncode, without_times(out), err, files, n_calls, n_left

    def check(self, *words, stdin=b'', before=None, first=None):
        """With `first`, each allocation from this number on fails in a run. Returns the number of allocations."""
        self.work = os.path.join(self.home.name, 'work')
        os.makedirs(self.work, exist_ok=True)
        self.env['HOME'] = self.work
        def run(number):
            for name, text in (before or {}).items():
                with open(os.path.join(self.work, name), 'w', encoding='utf-8') as file:
                    file.write(text)
            return self.run_failing(words, stdin, number)
        code, out, err, files, n_calls, n_left = run(0)
        self.assertEqual((code, n_left), (0, 0), (words, err))
        faults = []
        every = 1 if first else EVERY or max(1, n_calls // RUNS)
        for number in range(first or 1, n_calls + 1, every):
            result = run(number)
            fault = self.fault_of(result, (out, err, files), before or {})
            if fault:
                faults.append(f'{number} of {n_calls}: {fault}: status {result[0]}, {result[1]!r:.300}, '
                              f'{result[2]!r:.300}, {result[3]!r:.300}, {result[5]} blocks left')
        self.assertEqual(faults, [], '\n'.join(faults))
        return n_calls

    @staticmethod
    def fault_of(result, expected, before):
        code, out, err, files, _, n_left = result
        if code < 0 or code > 5:
            return 'crashed'
        if n_left > 0:
            return 'leaked'
        if code != 0 and not err.strip():
            return 'no message'
        for name, text in files.items():
            whole = (expected[2].get(name), without_times(before[name]) if name in before else None)
            if text not in whole and name.endswith('.json') and code == 0:
                return 'another file'
            if name.endswith('.json') and whole[0] and set(text) != set(whole[0]):
                return 'an incomplete file'
        if code == 0 and (out, sorted(files)) != (expected[0], sorted(expected[2])):
            return 'another result'
        return None


@unittest.skipUnless(NAME == 'bitnet-chat-fake', 'needs scripted answers')
class Scripted(MemoryCase):
    def test_one_prompt(self):
        self.fake('An answer of *some* words.\n\n- a list\n')
        self.check('-p', 'the question')

    def test_json(self):
        self.fake('An answer of some words.')
        self.check('--json', '--logprobs', '2', '-p', 'the question')

    def test_jsonl(self):
        self.fake('An answer of some words.')
        self.check('--jsonl', '--stop', 'nothing', '-p', 'the question')

    def test_lines(self):
        self.fake('one', 'two', 'three')
        self.check('--lines', stdin=b'first\nsecond\nthird\n')

    def test_a_thought_with_a_budget(self):
        self.fake('<think>A plan of many words.</think>One.', '<think>Two words.</think>Two.', states=1)
        template = ("{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}"
                    "{% if add_generation_prompt %}assistant: {% if enable_thinking is false %}<think></think>"
                    "{% endif %}{% endif %}")
        self.check('--template', 't.jinja', '--lines', '--json', '--think-budget', '4', stdin=b'first\nsecond\n',
                   before={'t.jinja': template})

    def test_lines_json_with_a_session(self):
        self.fake('one', 'two', 'three')
        self.check('--lines', '--json', '--session', 'talk', stdin=b'first\nsecond\nthird\n')

    def test_a_session_that_exists(self):
        self.fake('one', 'two', 'three', '<think>no</think>four')
        self.says('--lines', '--session', self.path('old.json'), stdin=b'first\nsecond\n')
        with open(self.path('old.json'), encoding='utf-8') as file:
            old = file.read()
        old = old.replace('"skipped"', '"mine": {"a": [1, 2.5]},\n  "skipped"')
        self.check('--session', './talk.json', '-p', 'third', before={'talk.json': old})

    def test_attachments_and_a_system_message(self):
        self.fake('one')
        self.check('--system', '@rules.txt', '-f', 'notes.md', '--session', 'talk', stdin=b'a longer\nquestion\n' * 40,
                   before={'rules.txt': 'Be brief.\n', 'notes.md': 'some `notes`\n' * 50})

    def test_attachments_in_a_script(self):
        self.fake('one', 'two')
        lines = b"/file 'notes one.md'\n/file\n/context\nsee @more.txt\n/history\nnext\n"
        self.check('-i', '--session', 'talk', stdin=lines,
                   before={'notes one.md': 'some `notes`\n' * 5, 'more.txt': 'more\n'})

    def test_turns_that_are_dropped(self):
        for policy in ('drop', 'keep-first'):
            self.fake('a' * 20, n_ctx=200)
            self.check('--lines', '--json', '--overflow', policy, stdin=b'first\nsecond\nthird\nfourth\nfifth\n')

    def test_the_sheet_of_the_model(self):
        for words in (['--info'], ['--info', '--json'], ['--explain']):
            self.check(*words)

    def test_a_script_of_commands(self):
        self.fake('one', 'two', 'three')
        self.check('-i', '--session', 'talk', stdin=b'first\n/set temp 0.5\n/set stop abc\nsecond\n/export talk.md\n'
                                                    b'/export talk.jsonl\n/undo\nthird\n/set\n/history\n/save\n')


@unittest.skipUnless(NAME == 'bitnet-chat-fake', 'needs scripted answers')
class Painters(TerminalCase):
    """At a terminal a failed allocation may lose keys or a part of the screen, but the chat can still be used."""

    def test_the_terminal_is_usable_and_restored(self):
        self.fake('An answer of **some** words.\n\n- a list\n')
        self.env.update(LD_PRELOAD=preload('fail_alloc'), FAIL_ALLOC_REPORT=self.path('calls'), FAIL_ALLOC='0')
        for words in PAINTERS:
            self.run_keys(words)
            with open(self.path('calls'), encoding='utf-8') as file:
                n_calls = int(file.readlines()[-1].split()[0])
            for number in range(1, n_calls, EVERY or n_calls // 15):
                self.env['FAIL_ALLOC'] = str(number)
                self.run_keys(words)
            self.env['FAIL_ALLOC'] = '0'

    def run_keys(self, words):
        terminal = self.open('--private', *words)
        for keys in (b'x\r', b'/set temp 0.5\r', b'/history\r'):
            terminal.send(keys)
            terminal.wait_a_bit(0.1)
        while terminal.process.poll() is None:
            terminal.send(b'\x15/quit\r')  # again if a key was lost
            terminal.wait_a_bit(1)
        self.assertIn(terminal.process.returncode, range(6), (self.env['FAIL_ALLOC'], terminal.seen[-500:]))
        self.assertEqual(terminal.modes(), terminal.before)


@unittest.skipIf(NAME == 'bitnet-chat-fake', 'needs the engine')
class Engine(MemoryCase):
    def test_an_answer(self):
        self.check('-n', '6', '--seed', '1', '-t', '1', '--json', '--session', 'talk', '-p', 'the question')

    def test_a_batch(self):
        lines = b'first\n{"prompt": "second", "system": "brief", "id": {"a": 1}, "max_tokens": 3}\n\nthird\n'
        for words in ([], ['--json'], ['--jsonl', '--logprobs', '2']):
            self.check('--batch', '2', '-n', '4', '--seed', '1', '-t', '1', *words, stdin=lines)

    def test_a_batch_loses_no_line(self):
        words = ('--batch', '1', '-n', '2', '--seed', '1', '-t', '1', '--json')
        n_calls = self.check(*words, stdin=b'first\n', first=sys.maxsize)  # none fails
        # The end of a run has fewer than 20 allocations; those for the second line begin before it.
        self.check(*words, stdin=b'first\nsecond\n', first=n_calls - 20)


if __name__ == '__main__':
    main()
