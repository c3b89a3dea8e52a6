#!/usr/bin/env python3
"""
test_chat_rows.py CHAT MAKE_MODEL: every option, setting and slash command of the program's own tables is used by
a test beside this one. It finds what nobody tests; that a test would fail without the thing is for its reader.
"""
import glob
import json
import os
import re
import subprocess

from chat_case import ChatCase
from program_case import PROGRAM, main
from test_chat_terminal import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))


def tests():
    """The text of all tests but the random keys, which look at no answer."""
    text = ''
    for path in glob.glob(os.path.join(HERE, 'test_*')):
        if os.path.basename(path) not in ('test_key_fuzz.py',):
            with open(path, encoding='utf-8') as file:
                text += file.read()
    return text


class Rows(ChatCase):
    def test_each_option_is_used(self):
        listed = subprocess.run([PROGRAM, '--help', 'all'], env=self.env, capture_output=True, check=True)
        names = re.findall(r'(?m)^ +(?:-\w, )?--([a-z0-9-]+)', listed.stdout.decode())
        self.assertGreater(len(names), 40)
        text = tests()
        missing = [n for n in names if not re.search(rf"""(--|/set |['" ]){n}(?![a-z-])""", text)]
        self.assertEqual(missing, [])

    def test_each_command_is_used(self):
        done = self.chat('-i', stdin=b'/help\n')
        names = re.findall(r'(?m)^/([a-z]+)', done.stderr.decode())
        self.assertGreater(len(names), 20)
        text = tests()
        missing = [n for n in names if not re.search(rf"""['"\n\\a-z0-9]?/{n}(?![a-z/])""", text)]
        self.assertEqual(missing, [])


class Rest(ChatCase):
    """Options that no other test needs."""

    def test_raw_leaves_the_template_out(self):
        count = [json.loads(self.says('--json', *words, stdin=b'abc'))['prompt_tokens']
                 for words in ((), ('--raw',))]
        self.assertGreater(count[0], count[1])
        self.assertIn(count[1], (3, 4))  # with or without a token for the beginning

    def test_sampling_settings_reach_the_answer(self):
        wanted = {'min-p': 0.25, 'typical': 0.5, 'repeat-penalty': 1.5, 'presence-penalty': 0.25,
                  'frequency-penalty': 0.75, 'repeat-last-n': 32}
        words = [word for name, value in wanted.items() for word in ('--' + name, str(value))]
        settings = json.loads(self.says('--json', *words, stdin=b'x'))['settings']
        self.assertEqual({name: settings[name.replace('-', '_')] for name in wanted}, wanted)

    def test_interactive_takes_commands_from_a_pipe(self):
        self.assertEqual(self.says('--interactive', stdin=b'/quit\nnever\n'), b'')

    def test_no_history_writes_none(self):
        for words, kept in (([], True), (['--no-history'], False)):
            terminal = Terminal([PROGRAM, self.model, *words], self.env)
            self.addCleanup(terminal.close)
            terminal.expect(b'loaded in')
            terminal.send(b'/set temp\r')
            terminal.expect(b'takes a number')
            terminal.send(b'\x04')
            self.assertEqual(terminal.wait(), 0)
            if os.path.exists(self.state('history')):
                self.assertTrue(kept)
                os.unlink(self.state('history'))
            else:
                self.assertFalse(kept)


if __name__ == '__main__':
    main()
