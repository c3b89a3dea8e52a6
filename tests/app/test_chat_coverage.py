#!/usr/bin/env python3
"""
test_chat_coverage.py CHAT MAKE_MODEL: each option, setting, slash command, key and alias of the program's tables
is used by a test in this folder. This finds untested features. It does not show that the test would fail without
the feature.
"""
import glob
import json
import os
import re
import subprocess

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main
from support.terminal_case import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))


def tests():
    """The text of all tests except the random keys, which check no answer."""
    text = ''
    for path in glob.glob(os.path.join(HERE, '**', 'test_*'), recursive=True):
        if os.path.basename(path) not in ('test_key_fuzz.py',):
            with open(path, encoding='utf-8') as file:
                text += file.read()
    return text


# Each key of /help keys, and the test that fails without the key.
KEYS = {
    'Enter': 'keys_typed_during_an_answer_wait_and_are_not_sent',
    'Ctrl-J': 'new_lines_by_key_by_backslash_and_by_fence',
    'Alt-Enter': 'new_lines_by_key_by_backslash_and_by_fence',
    'Up': 'up_and_down_move_within_a_message_first',
    'Down': 'up_and_down_move_within_a_message_first',
    'Ctrl-R': 'control_r_finds_what_was_typed_before',
    'Tab': 'an_unknown_command_stays_in_the_editor',
    'Ctrl-C': 'control_c_at_the_prompt_never_leaves',
    'Esc': 'control_c_and_escape_stop_and_keep_the_answer',
    'Ctrl-X Ctrl-E': 'the_users_editor_changes_the_message',
    'Ctrl-L': 'control_l_clears_the_screen_and_keeps_the_line',
    'Ctrl-Z': 'a_stopped_process_restores_the_terminal_and_continues',
    'F2': 'f2_changes_painters_and_keeps_chat_and_line',
    'PgUp': 'the_view_stays_while_text_comes',
    'PgDn': 'the_view_stays_while_text_comes',
    'Ctrl-Home': 'control_home_and_end_go_to_the_beginning_and_the_end',
    'Ctrl-End': 'control_home_and_end_go_to_the_beginning_and_the_end',
    'n': 'find_goes_from_match_to_match',
    'N': 'find_goes_from_match_to_match',
    'Ctrl-D': 'quit_and_control_d_leave_with_0',
}

# Each alias: lines before it, the text after it, and lines that show its effect.
ALIASES = {
    '?': ([], '', []), 'regen': (['a'], '', ['/history']), 'new': (['a'], '', ['/history']),
    'reset': (['a'], '', ['/history']), 'search': (['a'], ' answer', []), 'usage': (['a'], '', []),
    'read': ([], ' ' + os.path.join(HERE, 'support/ncurses_leaks.txt'), []),
    'upload': ([], ' ' + os.path.join(HERE, 'support/ncurses_leaks.txt'), []),
    'list': (['a', '/save trip!'], '', []), 'show': ([], '', []),
    'bye': (['a'], '', ['/tokens never']), 'exit': (['a'], '', ['/tokens never']),
    'q': (['a'], '', ['/tokens never']),
}


class Coverage(ChatCase):
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
        missing = [n for n in names if not re.search(rf'/{n}(?![a-z/])', text)]
        self.assertEqual(missing, [])

    def test_each_key_has_its_test(self):
        done = self.chat('-i', stdin=b'/help keys\n')
        listed = re.findall(r'(?m)^(\S.*?)  +(.*)$', done.stderr.decode())
        names = {key for keys, _ in listed for key in keys.split(', ')}
        self.assertEqual(names, set(KEYS))
        text = tests()
        self.assertEqual([t for t in KEYS.values() if f'def test_{t}(' not in text], [])

    def test_each_alias_is_its_command(self):
        with open(os.path.join(HERE, '../../app/commands/commands.c'), encoding='utf-8') as file:
            table = re.findall(r'(?m)^    \{"(\w+)", "([^"]+)", "', file.read())
        self.assertEqual({a for _, aliases in table for a in aliases.split()}, set(ALIASES))
        for name, aliases in table:
            for alias in aliases.split():
                before, words, after = ALIASES[alias]
                said = []
                for command in (name, alias):
                    self.fake('answer one', 'answer two')
                    script = before + [f'/{command}{words}'] + after
                    done = self.chat('-i', '--seed', '3', stdin='\n'.join(script).encode())
                    self.assertEqual(done.returncode, 0, (command, done.stderr))
                    said.append((done.stdout, re.sub(rb'[\d.]+', b'', done.stderr)))
                self.assertEqual(said[0], said[1], alias)
                self.assertNotIn(b'never', said[0][1])


class OtherOptions(ChatCase):
    """Options that no other test uses."""

    def test_raw_leaves_the_template_out(self):
        count = [json.loads(self.says('--json', *words, stdin=b'abc'))['prompt_tokens']
                 for words in ((), ('--raw',))]
        self.assertGreater(count[0], count[1])
        self.assertIn(count[1], (3, 4))  # with or without a BOS token
        for words in (('--raw', '--template', 'chatml'), ('--template', 'auto', '--raw')):
            self.assertIn('--raw and --template cannot be used together', self.refuses(2, *words, stdin=b'abc'))
        self.env['BITNET_CHAT_CONFIG'] = self.write('config', 'raw = on\n')
        self.assertEqual(json.loads(self.says('--json', stdin=b'abc'))['prompt_tokens'], count[1])
        self.assertEqual(json.loads(self.says('--json', '--template', 'auto', stdin=b'abc'))['prompt_tokens'], count[0])

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

    def test_history_can_be_set_in_a_chat(self):
        terminal = Terminal([PROGRAM, self.model], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(b'loaded in')
        for line, shown in (('/set history off', b'history = off'), ('/set top-k', b'top-k = '),
                            ('/set history on', b'history = on'), ('/set temp', b'temp = ')):
            start = len(terminal.seen)
            terminal.send(line + '\r')
            terminal.expect(shown, start=start)
        terminal.send(b'\x04')
        self.assertEqual(terminal.wait(), 0)
        with open(self.state('history'), encoding='utf-8') as file:
            self.assertEqual(file.read().split('\n'), ['/set history off', '/set temp', ''])


if __name__ == '__main__':
    main()
