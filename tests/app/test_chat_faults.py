#!/usr/bin/env python3
"""
test_chat_faults.py CHAT MAKE_MODEL: without a home, with a full disk and with two chats that share files, the
chat continues and files stay complete. With a scripted generator.
"""
import os
import re
import subprocess

from support.program_case import PROGRAM, main
from support.terminal_case import PROMPT, Terminal, TerminalCase

DISK_FULL = 'ulimit -f 0; exec "$0" "$@"'  # each write to a file fails


class Faults(TerminalCase):
    def continues(self, terminal, n_warnings):
        """The chat gives two answers and prints this many warnings."""
        terminal.expect(rb'loaded in')
        terminal.expect(PROMPT, start=terminal.seen.index(b'loaded in'))
        self.assertIn(b'one', self.ask(terminal, 'x'))
        self.assertIn(b'two', self.ask(terminal, 'y'))
        self.assertEqual(terminal.seen.count(b'the chat continues unsaved'), n_warnings, terminal.seen)
        # The first /quit is refused, so that the user can save the chat in another place.
        self.ask(terminal, '/quit', until=rb'last\s+turns\s+are\s+not\s+saved(?s:.*)without\s+them')
        self.leave(terminal)

    def test_without_a_home_the_chat_goes_on(self):
        self.fake('one', 'two')
        del self.env['HOME']
        terminal = self.open()
        terminal.expect(rb'loaded in')
        self.assertIn(b'one', self.ask(terminal, 'x'))
        self.assertIn(b'two', self.ask(terminal, 'y'))
        self.leave(terminal)

    def test_a_chat_without_turns_may_end_if_it_cannot_be_saved(self):
        self.env['XDG_STATE_HOME'] = '/proc/nope'
        for keys in ('/undo', '/clear'):
            self.fake('one')
            terminal = self.open()
            terminal.expect(rb'loaded in')
            self.assertIn(b'one', self.ask(terminal, 'x'))
            self.ask(terminal, keys, until=rb'1 undone|cleared')
            terminal.send(b'/quit\r')
            self.left_clean(terminal, 0)

    def test_without_a_home_a_named_chat_goes_on_with_one_warning(self):
        self.fake('one', 'two')
        del self.env['HOME']
        for words in ((), ('--private',)):
            terminal = self.open('--session', 'talk', *words)
            terminal.expect(rb'loaded in')
            self.assertIn(b'one', self.ask(terminal, 'x'))
            self.assertIn(b'two', self.ask(terminal, 'y'))
            self.assertEqual(len(re.findall(rb'HOME\s+is\s+set:\s+this\s+chat\s+is\s+not\s+saved', terminal.seen)), 1)
            self.leave(terminal)

    def test_without_a_home_a_chat_that_must_be_read_is_exit_5(self):
        self.fake('one')
        del self.env['HOME']
        for words in (('--session', 'talk'), ('--load', 'talk'), ('-C',)):
            self.assertRegex(self.refuses(5, *words, '-q', '-p', 'x'), 'neither XDG_[A-Z]*_HOME nor HOME is set')
        for line in ('/save talk', '/load talk'):
            self.assertIn('nor HOME is set', self.refuses(5, '-i', '-q', stdin=line.encode()))

    def test_a_home_that_cannot_be_written_is_one_warning(self):
        self.fake('one', 'two')
        self.env['HOME'] = self.write('no_folder', 'a file')
        for with_command in (False, True):
            terminal = self.open()
            if with_command:  # the history is written for a command, too, the chat only for a message
                terminal.expect(rb'loaded in(?s:.*)>>> ')
                self.ask(terminal, '/tokens x', until=rb'1 token')
            self.continues(terminal, 1)
            said = terminal.seen.split(b'/quit')[0]  # /quit is refused once, with the same path
            self.assertEqual(said.count(b'no_folder'), 1, said)

    def test_a_failed_named_chat_hides_no_warning_of_the_history(self):
        self.fake('one', 'two')
        for is_last_written in (True, False):
            with self.subTest(is_last_written):
                path = self.path(f'talk{is_last_written}.json')
                terminal = self.ready('--session', path)
                os.makedirs(path)  # the chat cannot replace a folder
                os.makedirs(self.state('history'), exist_ok=True)
                if not is_last_written:  # the warning of the named chat is enough
                    os.rename(os.path.dirname(self.state('history')), self.path('state'))
                    with open(os.path.dirname(self.state('history')), 'w', encoding='utf-8'):
                        pass  # a file in place of the folder
                for text in ('x', 'y'):
                    self.ask(terminal, text)
                self.assertRegex(terminal.seen, rb'the\s+chat\s+(is|continues)')
                self.assertEqual(len(re.findall(rb'new\s+input\s+is\s+not\s+added', terminal.seen)), is_last_written,
                                 terminal.seen)
                if is_last_written:
                    os.rmdir(self.state('history'))

    def test_a_history_that_cannot_be_written_alone_is_one_warning(self):
        self.fake('one', 'two')
        terminal = self.ready()
        os.makedirs(self.state('history'))
        for text in ('x', 'y'):
            self.ask(terminal, text)
        self.assertEqual(terminal.seen.count(b'new input is not added to the history file'), 1, terminal.seen)
        self.leave(terminal)

    def test_a_full_disk_is_one_warning(self):
        self.fake('one', 'two')
        terminal = Terminal(['sh', '-c', DISK_FULL, PROGRAM, self.model], self.env)
        self.addCleanup(terminal.close)
        self.continues(terminal, 1)

    def test_a_failed_snapshot_prints_the_error_of_the_device(self):
        self.fake('one', save_error=1)
        done = self.chat('-i', '--session', 'talk', '--snapshot', stdin=b'x\n')
        self.assertIn(b'no snapshot was written: the fake device is lost\n', done.stderr)
        left = [name for _, _, names in os.walk(self.home.name) for name in names]
        self.assertEqual(left, ['talk.json'])

    def test_a_save_on_a_full_disk_keeps_the_old_file(self):
        self.fake('one', 'two')
        session = self.path('kept.json')
        self.says('--session', session, '-p', 'a')
        with open(session, 'rb') as file:
            before = file.read()
        words = ['sh', '-c', DISK_FULL, PROGRAM, self.model, '--session', session, '-p', 'b']
        done = subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (5, b'one\n'), done.stderr)
        with open(session, 'rb') as file:
            self.assertEqual(file.read(), before)

    def test_two_chats_share_the_history_and_keep_both_conversations(self):
        self.fake('one')
        pair = [self.ready(), self.ready()]
        for terminal, text in zip(pair * 2, ('first', 'second', 'third', 'fourth')):
            self.ask(terminal, text)
        for terminal in pair:
            self.leave(terminal)
        with open(self.state('history'), encoding='utf-8') as file:
            self.assertEqual(file.read().split(), ['first', 'second', 'third', 'fourth'])
        self.assertEqual(self.messages(), ['first', 'third'])
        other = [m['content'] for m in self.saved(self.state('last-2.json')) if m['role'] == 'user']
        self.assertEqual(other, ['second', 'fourth'])
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.state('x')))),
                         ['history', 'last-2.json', 'last.json'])


class Keys(TerminalCase):
    def test_control_r_finds_what_was_typed_before(self):
        self.fake('one')
        terminal = self.ready()
        for text in ('needle one', 'other'):
            self.ask(terminal, text)
        start = len(terminal.seen)
        terminal.send(b'\x12need')
        terminal.expect(rb'search', start=start)
        terminal.send(b'\x05')  # accepts the match
        self.ask(terminal, '!')
        self.assertEqual(self.messages()[-1], 'needle one!')

    def test_control_l_clears_the_screen_and_keeps_the_line(self):
        terminal = self.ready()
        terminal.send(b'half a line')
        terminal.expect(b'half a line')
        start = len(terminal.seen)
        terminal.send(b'\x0c')
        terminal.expect(rb'\x1b\[H\x1b\[2?J(?s:.*)half a line', start=start)

    def test_up_and_down_move_within_a_message_first(self):
        self.fake('one')
        terminal = self.ready()
        self.ask(terminal, 'before')
        self.ask(terminal, 'ab\ncd\x1b[A!\x1b[B?')
        self.assertEqual(self.messages()[-1], 'ab!\ncd?')


if __name__ == '__main__':
    main()
