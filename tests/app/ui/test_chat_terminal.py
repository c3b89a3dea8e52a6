#!/usr/bin/env python3
"""
test_chat_terminal.py CHAT MAKE_MODEL: the inline painter on a pseudo-terminal: start, exit, signals, waiting and
editing, with a scripted generator.
"""
import json
import os
import re
import resource
import signal
import time

from support.program_case import PROGRAM, main
from support.terminal_case import ENTER, LEAVE, PAINTERS, PROMPT, Terminal, TerminalCase

# Signals that end a process by default, without those that the chat answers with an exit status.
ENDING = (signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM,
          signal.SIGPIPE, signal.SIGXCPU, signal.SIGPROF, signal.SIGTRAP, signal.SIGSYS, signal.SIGPOLL,
          signal.SIGRTMIN, signal.SIGRTMAX)


class Clipboard(TerminalCase):
    def test_copy_uses_the_terminal_without_a_clipboard_program(self):
        self.fake('Hi you!')
        terminal = self.ready()
        self.ask(terminal, 'x')
        seen = self.ask(terminal, '/copy', until=rb'clipboard of the terminal \(OSC 52\), 7 bytes')
        self.assertEqual(seen.count(b'\x1b]52;c;SGkgeW91IQ==\x07'), 1)
        self.leave(terminal)


class WaysOut(TerminalCase):
    def test_quit_and_control_d_leave_with_0(self):
        for keys in (b'/quit\r', b'/bye\r', b'\x04'):
            terminal = self.ready()
            terminal.send(keys)
            self.left_clean(terminal, 0)

    def test_signals_restore_the_terminal(self):
        self.fake('word ', endless=1, token_ms=5)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            terminal = self.ready()
            terminal.process.send_signal(number)
            self.left_clean(terminal, code)
            terminal = self.ready()
            terminal.send(b'x\r')
            terminal.expect(b'word word')
            terminal.process.send_signal(number)
            self.left_clean(terminal, code)
            with open(self.state('last.json'), encoding='utf-8') as file:
                answer = json.load(file)['messages'][1]
            self.assertEqual(answer['finish'], 'interrupted')
            self.assertTrue(answer['content'].startswith('word word'))

    def test_signals_that_end_a_process_restore_the_terminal(self):
        self.fake('word ', endless=1, token_ms=5)
        for number in ENDING:
            for painter, answers in (([], False), ([], True), (['--tui'], False)):
                terminal = self.ready(*painter)
                resource.prlimit(terminal.process.pid, resource.RLIMIT_CORE, (0, 0))
                if answers:
                    terminal.send(b'x\r')
                    terminal.expect(b'word word')
                terminal.process.send_signal(number)
                self.left_clean(terminal, -number)
                self.assertTrue(terminal.seen.endswith(b'\r\n'), terminal.seen[-50:])  # the shell begins a row
                self.assertEqual(terminal.seen.count(ENTER), terminal.seen.count(LEAVE))

    def test_a_limit_of_file_size_does_not_end_the_chat(self):
        self.fake('one', 'two')
        for painter in ([], ['--tui']):
            terminal = Terminal(['sh', '-c', 'ulimit -f 0; exec "$0" "$@"', PROGRAM, self.model, *painter],
                                self.env)
            self.addCleanup(terminal.close)
            terminal.expect(rb'loaded in')
            self.says_in(terminal, b'x\r', rb'unsaved(?s:.*)\[\d+ tok')
            self.says_in(terminal, b'y\r')
            terminal.process.send_signal(signal.SIGXFSZ)
            self.says_in(terminal, b'/quit\r', rb'without\s+them')  # refused once: the turns are not saved
            self.leave(terminal)

    def test_the_banner_names_a_context_limited_by_memory(self):
        self.fake('one', n_ctx=2048, n_ctx_train=8192)
        terminal = Terminal([PROGRAM, self.model], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(rb'context 2048 \(fits into half of the free')
        self.fake('one', n_ctx=8192, n_ctx_train=8192)
        terminal = Terminal([PROGRAM, self.model], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(rb'context 8192, loaded in')

    def test_an_ignored_signal_stays_ignored(self):
        terminal = Terminal(['sh', '-c', 'trap "" USR1; exec "$0" "$@"', PROGRAM, self.model], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(rb'loaded in')
        terminal.process.send_signal(signal.SIGUSR1)
        self.leave(terminal)

    def test_a_fault_in_the_engine_restores_the_terminal(self):
        self.fake('fine', fault=1)
        terminal = self.ready()
        resource.prlimit(terminal.process.pid, resource.RLIMIT_CORE, (0, 0))
        terminal.send(b'x\r')
        self.left_clean(terminal, -signal.SIGILL)

    def test_a_failed_load_restores_the_terminal_and_is_exit_3(self):
        self.fake(load_ms=200, load_error=1)
        terminal = self.open()
        terminal.expect(rb'bitnet-chat: tensor')
        self.left_clean(terminal, 3)

    def test_a_second_control_c_leaves_a_stuck_engine(self):
        self.fake('never', read_stop=0, stuck=1, begun=self.gate('begun'))
        terminal = self.ready()
        self.says_in(terminal, b'x\r', rb'reading')
        self.read_until(terminal, lambda: os.path.exists(self.path('begun')))  # the engine is in the middle of a token
        terminal.send(b'\x03')
        terminal.expect(b'stopping')
        self.assertIsNone(terminal.process.poll())
        for _ in range(60):  # one sent too early counts as a repetition of the first
            if terminal.process.poll() is None:
                terminal.send(b'\x03')
                terminal.wait_a_bit(0.5)
        self.left_clean(terminal, 130)

    def test_a_stopped_process_restores_the_terminal_and_continues(self):
        self.fake('fine')
        terminal = self.half_typed_and_stopped()
        start = len(terminal.seen)
        terminal.send(b'\n')  # the shell reads a line and continues the chat
        terminal.expect(b'half a line', start=start)
        terminal.send(b'!\r')
        terminal.expect(rb'fine', start=start)
        terminal.expect(PROMPT, start=start + terminal.seen[start:].index(b'fine'))
        self.leave(terminal)

    def test_the_input_row_is_repainted_after_sigcont(self):
        self.fake('fine')
        terminal = self.ready()
        terminal.send(b'half')
        terminal.expect(b'half')
        start = len(terminal.seen)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.expect(b'half', start=start)
        self.assertRegex(terminal.seen[start:], rb'\r\x1b\[[JK].*>>> .*half')
        terminal.send(b'\x15\x04')
        self.left_clean(terminal, 0)

    def test_a_suspend_without_job_control_changes_nothing(self):
        self.fake('fine')
        terminal = self.ready()
        terminal.send(b'half')
        terminal.expect(b'half')
        terminal.send(b'\x1a')
        terminal.expect(rb'(?s)half.*half')
        self.ask(terminal, ' a line')
        self.leave(terminal)


class Waiting(TerminalCase):
    def test_the_prompt_comes_before_the_model(self):
        gate = self.gate()
        self.fake('done', load_until=gate)
        terminal = self.open()
        terminal.expect(PROMPT)
        self.assertNotIn(b'loaded in', terminal.seen)
        self.says_in(terminal, b'typed ahead\r', rb'typed ahead(?s:.*)loading')
        self.write('gate', '')
        terminal.expect(b'done')
        self.assertLess(terminal.seen.index(b'typed ahead'), terminal.seen.index(b'loaded in'))

    def test_a_message_waits_for_the_model_and_escape_cancels_it(self):
        for words in ([], ['--tui']):
            self.fake('never', load_until=self.gate())
            terminal = self.open(*words)
            terminal.expect(PROMPT)
            terminal.send(b'a question\r')
            terminal.expect(b'your message waits, Esc takes it back')
            terminal.send(b'more\r')
            terminal.expect(b'next: more')
            start = len(terminal.seen)
            terminal.send(b'\x1b')
            terminal.expect(rb'(?s)stopped.*not sent: more.*Up recalls it.*a question', start=start)
            self.write('gate', '')
            terminal.expect(rb'loaded in', start=start)
            terminal.settle()
            self.assertNotIn(b'never', terminal.seen)
            terminal.send(b'\x03/stats\r')
            terminal.expect(rb'in all.*[^0-9]0 answers')

    def test_plain_shows_text_typed_during_an_answer_at_the_next_prompt(self):
        self.fake('one \x1dtwo', hold=self.gate())
        terminal = self.ready('--plain')
        self.says_in(terminal, b'x\r', rb'one')
        start = len(terminal.seen)
        terminal.send(b'still typed')
        terminal.settle()
        self.write('gate', '')
        terminal.expect(rb'(?s)two\r\n.*\r\n>>> still typed$', start=start)
        self.assertEqual(terminal.seen[start:].count(b'still'), 1)

    def test_control_c_during_prefill_returns_the_question(self):
        self.fake('never', read_stop=3)
        terminal = self.ready()
        self.says_in(terminal, b'a question\r', rb'reading')
        self.says_in(terminal, b'\x03', rb'>>> .*a question')
        self.assertNotIn(b'never', terminal.seen)
        terminal.send(b'\x15/context\r')  # Ctrl-U: the question is no longer part of the context
        terminal.expect(rb'in all +1 tok')

    def test_the_size_of_the_prompt_is_shown_before_a_token_of_it_is_read(self):
        self.fake('never', read_stop=0)
        terminal = self.ready()
        terminal.send(b'a question\r')
        terminal.expect(rb'[^\d]0/\d\d 0%')  # the context has four digits

    def test_the_numbers_of_a_stopped_prefill_are_those_of_its_part(self):
        self.fake('never', read_us=50000, read_stop=6)
        terminal = self.ready('--stats')
        self.says_in(terminal, b'a question that is read slowly\r', rb'6/\d\d \d+%')
        start = len(terminal.seen)
        terminal.send(b'\x03')
        terminal.expect(rb'>>> .*a question', start=start)
        line = re.search(rb'\[0 tok, prompt (6) tok \d+ tok/s, ctx 1/4096', terminal.seen)
        self.assertTrue(line, terminal.seen)
        terminal.send(b'\x15/stats\r')
        terminal.expect(rb'prompt +\d+ tok: 0 reused, ' + line[1] + rb' evaluated in \d+\.\d+ s, [1-9]')
        terminal.expect(rb'context +1 of 4096 tok')

    def test_control_c_and_escape_stop_and_keep_the_answer(self):
        for key in (b'\x03', b'\x1b'):
            self.fake('word ', endless=1, token_ms=5)
            terminal = self.ready()
            terminal.send(b'x\r')
            terminal.expect(b'word word')
            start = len(terminal.seen)
            terminal.send(key)
            terminal.expect(b'stopped', start=start)
            terminal.expect(PROMPT, start=start)
            answer = self.saved(self.state('last.json'))[1]
            self.assertTrue(answer['content'].startswith('word word'))
            self.assertEqual(bytes(answer['ids']), answer['content'].encode())

    def test_control_c_at_the_prompt_never_leaves(self):
        self.fake('fine')
        terminal = self.ready()
        self.says_in(terminal, b'\x03', rb'Ctrl-D or /quit leaves')
        start = len(terminal.seen)
        for _ in range(5):
            terminal.send(b'\x03')
            self.says_in(terminal, b'a word', rb'a word')
            self.says_in(terminal, b'\x03', rb'\x1b\[[JK]')
        self.assertNotIn(b'leaves', terminal.seen[start:])  # once is enough
        self.ask(terminal, 'x')
        self.says_in(terminal, b'\x03', rb'Ctrl-D or /quit leaves')
        terminal.send(b'some text\x03')
        self.assertIsNone(terminal.process.poll())
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_up_recalls_what_control_c_has_cleared(self):
        paste = b'\x1b[200~' + b'\n'.join(b'row %d' % i for i in range(40)) + b'\x1b[201~'
        for words in PAINTERS:
            self.fake('fine', 'fine')
            terminal = self.ready(*words)
            # The recalled and unchanged text is not added again.
            for keys, shown in ((b'see ' + paste, rb'pasted 1'), (b'a long thought', rb'a long thought'),
                                (b'\x1b[A', rb'a long thought'), (b' a secret', rb'a secret')):
                self.says_in(terminal, keys, shown)  # the terminal forgets unread keys at Ctrl-C
                self.says_in(terminal, b'\x03', rb'\x1b\[[JK]')
            self.says_in(terminal, b'\x1b[A!\r', rb'\[\d+ tok')
            self.says_in(terminal, b'\x1b[A\x1b[A\x1b[A\r', rb'\[\d+ tok')
            self.assertEqual(self.messages()[0], 'a long thought!')
            self.assertTrue(self.messages()[1].startswith('see row 0\nrow 1\n'), self.messages()[1])
            self.assertTrue(self.messages()[1].endswith('\nrow 39'), self.messages()[1])
            self.leave(terminal)
            with open(self.state('history'), encoding='utf-8') as file:
                self.assertNotIn('a long thought\n', file.read())  # it was not sent

    def test_control_c_ends_a_walk_through_the_history(self):
        for words in PAINTERS:
            # Up, a search, a search without a result
            for walk in (b'\x1b[A\x1b[A\x1b[A', b'\x12alpha', b'\x12nowhere'):
                self.fake('fine', 'fine', 'fine', 'fine')
                terminal = self.ready('--private', *words)
                for message in (b'alpha one', b'bravo two', b'charlie three'):
                    self.says_in(terminal, message + b'\r', rb'\[\d+ tok')
                terminal.settle()
                terminal.send(walk)
                terminal.settle()
                terminal.send(b'\x03')
                terminal.settle()
                self.says_in(terminal, b'\x1b[A', b'charlie three')
                terminal.send(b'\x03')
                self.leave(terminal)

    def test_the_cursor_of_typed_text_is_visible_during_an_answer(self):
        self.fake('word word\x1d.', hold=self.gate())
        terminal = self.ready()
        terminal.send(b'x\r')
        terminal.expect(b'word')
        terminal.send('a漢c'.encode())
        terminal.expect('a漢c'.encode() + rb'\x1b\[7m \x1b')  # exchanged colours
        terminal.send(b'\x02\x02')
        terminal.expect(rb'a\x1b\[7m' + '漢'.encode() + rb'\x1b[^c]*c')
        terminal.send(b'\x15')
        self.write('gate', '')
        terminal.expect(rb'\[\d+ tok')

    def test_keys_typed_during_an_answer_wait_and_are_not_sent(self):
        self.fake('word word\x1d.', hold=self.gate())
        terminal = self.ready()
        terminal.send(b'x\r')
        terminal.expect(b'word')
        terminal.send(b'ahead')
        terminal.expect(b'ahead')
        self.write('gate', '')
        terminal.expect(rb'\[\d+ tok')
        start = terminal.seen.rindex(b' tok,')  # the prompt may be in the same read
        terminal.expect(rb'>>> .*ahead', start=start)
        terminal.settle()
        self.assertNotIn(b'word', terminal.seen[start:])

    def test_an_idle_prompt_costs_nothing(self):
        terminal = self.ready()
        terminal.settle()
        self.assertLessEqual(terminal.percent_of_cpu(4), 1)


class Editing(TerminalCase):
    def test_new_lines_by_key_by_backslash_and_by_fence(self):
        terminal = self.ready()
        self.ask(terminal, 'one\ntwo')
        self.ask(terminal, 'one\x1b\rtwo')
        self.ask(terminal, 'one\\\rtwo')
        self.ask(terminal, '"""one\rtwo"""')
        self.assertEqual(self.messages(), ['one\ntwo'] * 4)

    def test_a_backslash_in_a_fence_is_text(self):
        terminal = self.ready()
        self.ask(terminal, '"""one\\\rtwo"""')
        self.ask(terminal, '"""ab\\\x1b[D\r\x05"""')  # Left, Enter, Ctrl-E
        self.assertEqual(self.messages(), ['one\\\ntwo', 'ab\n\\'])

    def test_the_end_mark_of_a_paste_may_arrive_in_parts(self):
        terminal = self.ready()
        terminal.send(b'\x1b[200~pasted\x1b')
        terminal.wait_until_read()
        time.sleep(.3)  # longer than the time after which a single Esc is the Esc key
        terminal.send(b'[201~')
        terminal.expect(b'pasted')
        self.ask(terminal, ' and typed')
        self.assertEqual(self.messages(), ['pasted and typed'])

    def test_a_paste_is_not_sent_and_stays_complete(self):
        self.fake(n_ctx=20000)
        terminal = self.ready()
        terminal.send(b'\x1b[200~a\rb\nc\x1b[201~')
        terminal.settle()
        self.assertNotIn(b'tok,', terminal.seen)
        self.ask(terminal, '')
        long = ''.join(f'line {i}\n' for i in range(500))
        self.ask(terminal, 'see: \x1b[200~' + long.replace('\n', '\r') + '\x1b[201~ok?')
        self.assertEqual(self.messages(), ['a\nb\nc', f'see: {long}ok?'])
        self.assertIn(b'[pasted 1: 500 lines', terminal.seen)
        self.assertNotIn(b'line 250', terminal.seen)

    def test_a_placeholder_is_edited_as_a_whole(self):
        self.fake(n_ctx=20000)
        terminal = self.ready()
        rows = ''.join(f'line {i}\n' for i in range(20))
        paste = '\x1b[200~' + rows.replace('\n', '\r') + '\x1b[201~'
        left, right, home, end = '\x02', '\x06', '\x01', '\x05'
        cases = ((paste + '\x7fx', 'x'),                          # Backspace
                 (paste + left + 'x', 'x' + rows),                # the cursor does not stop inside
                 (paste + home + right + 'x', rows + 'x'),
                 ('a ' + paste + ' b' + home + '\x1bf\x1bfx', 'a ' + rows + 'x b'),  # Alt-F twice
                 ('a ' + paste + '\x17x', 'a x'),                 # Ctrl-W
                 (paste + ' b' + home + '\x1bd' + 'x', 'x b'),    # Alt-D
                 (paste + ' b' + home + '\x0bx', 'x'),            # Ctrl-K
                 (paste + paste + home + '\x04' + end + 'x', rows + 'x'),
                 (paste + paste + '\x7fx', rows + 'x'),
                 # One Ctrl-_ restores a placeholder that Backspace, Ctrl-W, Ctrl-D or a second Backspace deleted.
                 ('a' + paste + '\x7f\x1fb', 'a' + rows + 'b'),
                 ('a' + paste + '\x17\x1fb', 'a' + rows + 'b'),
                 (paste + home + '\x04\x1f' + end + 'b', rows + 'b'),
                 (paste + 'c\x7f\x7f\x1f' + end + 'b', rows + 'b'),
                 ('[' + paste + home + '\x04' + end + 'x', rows + 'x'),
                 (paste + '\x17\x19x', rows + 'x'),              # Ctrl-W, Ctrl-Y
                 (paste + ' b' + home + '\x1bd' + end + '\x19', ' b' + rows),
                 (paste + home + '\x1bu' + end + 'x', rows + 'x'),  # Alt-U is refused
                 (paste + '\x14x', rows + 'x'),                    # Ctrl-T too
                 ('\x12line\x06x', rows + 'xx'))                  # a search ends inside of one
        for keys, _ in cases:
            self.ask(terminal, keys)
        self.assertEqual(self.messages(), [text for _, text in cases])

    def test_reverting_a_line_with_a_placeholder_restores_the_line(self):
        """Alt-R undoes all changes, and Readline then frees its list of them."""
        self.fake(n_ctx=20000)
        terminal = self.ready()
        self.ask(terminal, '[1] explain this')
        paste = '\x1b[200~' + 'line\r' * 10 + '\x1b[201~'
        self.ask(terminal, '\x1b[A\x15' + paste + ' x\x1br')
        self.assertEqual(self.messages(), ['[1] explain this'] * 2)

    def test_pasting_a_megabyte_is_fast(self):
        terminal = self.ready('-c', '4000000')
        self.pastes_in_linear_time(terminal)
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_wide_characters_are_deleted_whole(self):
        terminal = self.ready()
        self.ask(terminal, '漢字é\x7f\x7fx')
        self.assertEqual(self.messages(), ['漢x'])

    def test_an_unknown_command_stays_in_the_editor(self):
        self.fake('fine')
        terminal = self.ready()
        start = len(terminal.seen)
        terminal.send(b'/nope\r')
        terminal.expect(rb'unknown command /nope', start=start)
        terminal.expect(rb'>>> .*/nope', start=start)
        terminal.send(b'\x15')
        start = len(terminal.seen)
        terminal.send(b'/se\t\t')
        terminal.expect(rb'/sessions', start=start)
        terminal.send(b't te\t0.25\r')
        terminal.expect(rb'temp = 0\.25', start=start)

    def test_a_command_of_several_lines_is_a_message_with_a_note(self):
        self.fake('ahoy')
        for painter in PAINTERS:
            terminal = self.ready('--private', *painter)
            self.says_in(terminal, b'/system You are a pirate.\x1b\rBe brief\r',
                         rb'command /system has only one line; /system @FILE reads(?s:.*)\[\d+ tok')
            terminal.settle()
            seen = self.says_in(terminal, b'/se no\x1b\rcommand\r')  # not the whole name of a command
            self.assertNotIn(b'only one line', seen)
            terminal.send(b'/quit\r')
            self.left_clean(terminal, 0)

    def test_a_path_that_tab_has_quoted_is_found(self):
        self.fake('fine')
        path = self.write('my talk.md', 'old')
        terminal = self.ready('--private', folder=self.folder.name)
        self.ask(terminal, 'x')
        terminal.send(b'/export my\t')
        terminal.expect(rb'my\\ talk\.md ')
        terminal.send(b'!\r')  # behind the blank that Tab adds
        terminal.expect(rb'bytes written to my talk\.md')
        with open(path, encoding='utf-8') as file:
            self.assertIn('fine', file.read())
        os.unlink(path)
        terminal.send(b'/copy \t\t')
        terminal.expect(rb'last')
        terminal.send(b'\x15/quit\r')
        self.left_clean(terminal, 0)

    def test_tab_completes_a_setting_up_to_its_value(self):
        self.fake('an answer', 'an answer')
        for painter in PAINTERS:
            terminal = self.ready(*painter)
            self.says_in(terminal, b'x\r')
            terminal.send(b'/retry max-to\t2\r')
            self.read_until(terminal, lambda: self.messages('assistant') == ['an'])
            self.leave(terminal)

    def test_tab_completes_paths_in_quotes(self):
        """Each file is attached, so the program reads the quotes as Tab writes them."""
        self.fake('fine')
        os.mkdir(self.path('my docs'))
        for name in ('my docs/so it is.txt', "my docs/it's.txt", 'my docs/a"b.txt'):
            self.write(name, 'x')
        terminal = self.ready('--private', folder=self.folder.name)
        for keys, path in ((b"/file 'my\tso\t", b"/file 'my docs/so it is.txt'"),
                           (b'/file "my docs/so\t', b'/file "my docs/so it is.txt"'),
                           (b"/file 'my docs/it\t", b"/file 'my docs/it'\\''s.txt'"),
                           (b'/file "my docs/a\t', b'/file "my docs/a\\"b.txt"'),
                           (b"don't @'my\tso\t", b"don't @'my docs/so it is.txt'"),
                           (b"it's @my\tso\t", b"it's @my\\ docs/so\\ it\\ is.txt "),
                           (b"say 'in @my\tso\t", b"say 'in @my\\ docs/so\\ it\\ is.txt ")):
            start = len(terminal.seen)
            terminal.send(keys)
            terminal.expect(re.escape(path), start=start)
            terminal.send(b'\r')
            terminal.expect(rb'will be sent before|1 file attached', start=start)
            terminal.send(b'/file off\r')
            terminal.expect(rb'will not be sent|no file is attached', start=start)
            terminal.send(b'\x15')
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_a_placeholder_counts_one_line(self):
        terminal = self.ready('--private')
        terminal.send('\x1b[200~' + 'x' * 1200 + '\x1b[201~')
        terminal.expect(rb'\[pasted 1: 1 line, 1200 bytes')
        terminal.send(b'\x15/quit\r')
        self.left_clean(terminal, 0)

    def test_all_of_several_pasted_lines_are_processed(self):
        terminal = self.ready()
        terminal.send('/set temp 0.5\r/set top-k 7\r/tokens ab\r/nonsense\r')
        terminal.expect(rb'temp = 0.5')
        terminal.expect(rb'top-k = 7')
        terminal.expect(rb'unknown command /nonsense')
        terminal.expect(PROMPT + rb'\S*/nonsense', start=terminal.seen.index(b'unknown command'))
        terminal.send('\x15/quit\r')
        self.left_clean(terminal, 0)

    def test_a_long_list_of_files_is_shown_without_a_question(self):
        for i in range(120):
            self.write(f'many{i:03}', b'')
        terminal = self.ready('--private', rows=8, folder=self.folder.name)
        for keys in (b'@many', b'@many', b'/file many'):
            start = len(terminal.seen)
            terminal.send(keys + b'\t\t')
            terminal.expect(b'many119', start=start)
            terminal.expect(re.escape(keys), start=start + terminal.seen[start:].index(b'many119'))
            terminal.send(b'\x15')
        self.assertNotIn(b'More', terminal.seen)
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_keys_that_crash_readline_do_nothing(self):
        terminal = self.ready()
        for keys in (b'\x1d\x1bz', b'\x1b\x1d\x1b[0z', b'\x18(\x1bz\x18)\x18e', b'\x18(\x1b\x07\x18)\x18e',
                     b'\x12x\x18)', b'\x12x\x18e', b'\x18(\x18ee\x18)\x18e'):
            terminal.send(keys)
            terminal.settle()
        self.ask(terminal, '\x03\x15fine')
        self.assertEqual(self.messages(), ['fine'])

    def test_edit_brings_the_message_back(self):
        self.fake('one', 'two')
        terminal = self.ready()
        self.ask(terminal, 'first words')
        start = len(terminal.seen)
        terminal.send(b'/edit\r')
        terminal.expect(rb'>>> .*first words', start=start)
        self.ask(terminal, '!')
        self.assertEqual(self.messages(), ['first words!'])

    def test_history_survives_and_is_private(self):
        terminal = self.ready()
        self.ask(terminal, 'two\nlines #' '12 \\ here')
        self.leave(terminal)
        self.assertEqual(os.stat(self.state('history')).st_mode & 0o777, 0o600)
        terminal = self.ready()
        self.ask(terminal, '\x1b[A')
        self.assertEqual(self.messages(), ['two\nlines #' '12 \\ here'])

    def test_private_writes_no_files(self):
        terminal = self.ready('--private')
        self.ask(terminal, 'secret')
        self.leave(terminal)
        self.assertEqual(os.listdir(self.home.name), [])

    def test_the_users_editor_changes_the_message(self):
        self.use_editor('printf "%s and more\\n" "$(cat "$1")" > "$1"\n')
        terminal = self.ready()
        terminal.send(b'some\x18\x05')
        terminal.expect(rb'some and more')
        self.ask(terminal, '')
        self.assertEqual(self.messages(), ['some and more'])

    def test_one_undo_restores_the_line_from_before_the_editor(self):
        self.use_editor('echo other words > "$1"\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            terminal.send(b'my own text\x1b[D\x18\x05')  # Left, Ctrl-X Ctrl-E
            terminal.expect(rb'other words')
            self.says_in(terminal, b'\x1f\x05.\r')  # undo, Ctrl-E
            self.leave(terminal)
            self.assertEqual(self.messages(), ['my own text.'])

    def test_an_editor_can_be_stopped_and_continued(self):
        self.use_editor('kill -STOP $$\necho after the stop > "$1"\n')
        command = 'set -m; "$0" "$@"; echo the shell has the terminal; read x; fg'
        terminal = self.start(['sh', '-c', command, PROGRAM, self.model])
        terminal.expect(rb'loaded in')
        terminal.send(b'/edit\r')
        terminal.expect(b'the shell has the terminal')
        terminal.send(b'\r')
        terminal.expect(rb'after the stop')
        self.ask(terminal, '')
        self.assertEqual(self.messages(), ['after the stop'])

    def test_control_c_in_the_editor_keeps_the_message(self):
        self.use_editor('kill -INT $PPID\nsleep 0.1\nexit 1\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            terminal.send(b'some words\x18\x05')
            terminal.expect(rb'the message is unchanged')
            self.says_in(terminal, b'\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['some words'])

    def test_a_message_with_two_slashes_returns_as_a_message(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            for line in ('//clear', '/home/me is a path'):
                self.says_in(terminal, line + '\r')
                start = len(terminal.seen)
                terminal.send('/edit\r')
                terminal.expect(b'moved back', start=start)
                self.says_in(terminal, b'\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['/clear', '/home/me is a path'])

    def test_a_terminal_without_escapes_gets_none_after_an_editor(self):
        self.env.update(TERM='dumb', EDITOR='true')
        terminal = self.ready()
        terminal.send(b'some\x18\x05')
        terminal.expect(rb'some.*some')
        self.ask(terminal, '')
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)
        self.assertNotIn(b'\x1b', terminal.seen)

    def test_only_info_names_a_device_that_is_not_used(self):
        self.fake('one', no_cuda=1)
        terminal = self.ready()
        self.ask(terminal, 'x')
        self.assertNotIn(b'cuda', terminal.seen)
        terminal.send(b'/info\r')
        terminal.expect(rb'device +fake device\r\n +cuda is not used: no driver')
        self.assertIn(b'cuda is not used: no driver', self.ready('-v').seen)

    def test_banner_and_info_name_the_repairs_in_one_line(self):
        names = rb'(?=[^\n]*pre-tokenizer)(?=[^\n]*end-of-turn)(?=[^\n]*chat-template)'
        model = self.make('official.gguf', '--official', '--vocab', 'llama3-like', '--n-vocab', '3000')
        for words in PAINTERS:
            terminal = self.start([PROGRAM, model, *words])
            terminal.expect(rb'repaired in memory: ' + names)
            terminal.expect(rb'loaded in')
            start = len(terminal.seen)
            terminal.send(b'/info\r')
            terminal.expect(rb'repairs +' + names, start=start)
            self.leave(terminal)

    def test_a_repeated_token_is_reported_with_the_seed(self):
        self.fake('G', same=1)
        seen = self.ask(self.ready('--seed', '77'), 'x')
        self.assertIn(b'output degenerated (same token); try another seed', seen)
        self.assertRegex(seen, rb'seed 77\]')

    def test_the_end_at_a_stop_string_is_reported(self):
        self.fake('one two three')
        for painter in PAINTERS:
            terminal = self.ready('--stop', 'two', *painter)
            self.says_in(terminal, b'x\r', rb'a text of --stop has ended the answer(?s:.*)\[\d+ tok')
        self.assertEqual(self.chat('--stop', 'two', stdin=b'x').stderr, b'')

    def test_continue_reports_an_empty_continuation(self):
        self.fake('one', '')
        terminal = self.ready()
        self.assertNotIn(b'nothing to add', self.ask(terminal, 'x'))
        self.assertIn(b'the model has nothing to add', self.ask(terminal, '/continue'))

    def test_edit_of_an_empty_chat_opens_the_users_editor(self):
        self.use_editor('echo from the editor > "$1"\n')
        for words in ([], ['--tui']):
            terminal = self.ready(*words)
            terminal.send(b'/edit\r')
            terminal.expect(rb'from the editor')
            terminal.send(b'!\r')
            terminal.expect(rb'\[\d+ tok')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['from the editor!'])
        self.env['EDITOR'] = '/no/such/editor'
        terminal = self.ready()
        terminal.send(b'/edit\r')
        terminal.expect(rb'(?s)the editor .*failed.*>>> ')
        self.leave(terminal)


class Safety(TerminalCase):
    def test_the_models_controls_never_reach_the_terminal(self):
        self.fake(b'a\x1b]52;c;eA==\x07b\x9bc\x1b[2Jd\xe2\x80\xaee')
        terminal = self.ready()
        seen = self.ask(terminal, 'x')
        for bad in (b'\x1b]', b'\x07', b'\x9b', b'\x1b[2J', b'\xe2\x80\xae'):
            self.assertNotIn(bad, seen)
        self.assertIn('a\ufffd]52;c;eA==\ufffdb\ufffdc'.encode(), seen)

    def test_dumb_and_plain_terminals_get_no_escape(self):
        self.fake('some words')
        for term, words in (('dumb', []), ('nonsense', []), ('xterm', ['--plain'])):
            self.env['TERM'] = term
            terminal = self.ready(*words)
            self.ask(terminal, 'x')
            terminal.send(b'/quit\r')
            self.left_clean(terminal, 0)
            if term != 'xterm':  # on a capable terminal Readline moves the cursor
                self.assertNotIn(b'\x1b', terminal.seen)

    def test_no_color_and_color_never_leave_no_attribute(self):
        for variable, words, looks in ((None, [], True), ('1', [], False),
                                       (None, ['--color', 'never'], False),
                                       ('1', ['--color', 'always'], True)):
            self.env.pop('NO_COLOR', None)
            if variable:
                self.env['NO_COLOR'] = variable
            terminal = self.ready(*words)
            self.assertEqual(b'\x1b[2m' in terminal.seen and b'\x1b[1m' in terminal.seen, looks)

    def test_the_colour_can_be_set_in_a_chat(self):
        self.fake('some **bold** words')
        for words in PAINTERS:
            terminal = self.ready(*words)
            for value, looks in (('never', False), ('always', True)):
                self.says_in(terminal, f'/set color {value}\r', f'color = {value}'.encode())
                seen = self.says_in(terminal, b'x\r')
                if words:  # the full screen may have written the answer in pieces
                    terminal.settle()
                    seen = self.says_in(terminal, b'\x0c', rb'some(?s:.*)words')
                self.assertEqual(b'\x1b[1m' in seen[seen.index(b'some'):] or b'\x1b[0;1m' in seen[seen.index(b'some'):],
                                 looks, seen)
            self.leave(terminal)

    def test_a_terminal_of_one_cell_survives(self):
        self.fake('some words that do not fit', token_ms=2)
        terminal = self.open(rows=1, columns=1)
        terminal.send(b'x\r')
        last = self.state('last.json')
        self.wait_for(lambda: (os.path.exists(last) and len(self.saved(last)) == 2)  # question and answer
                      or terminal.read(0.05) and False)
        self.leave(terminal)

    def test_answers_go_to_a_pipe_while_input_is_a_terminal(self):
        self.fake('the answer')
        path = self.path('typed')
        terminal = Terminal(['sh', '-c', 'exec "$0" "$1" > "$2"', PROGRAM, self.model, path], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(PROMPT)
        terminal.send(b'hello\r')
        terminal.expect(rb'\[10 tok')
        terminal.send(b'\x04')
        self.assertEqual(terminal.wait(), 0)
        with open(path, 'rb') as file:
            self.assertEqual(file.read(), b'the answer\n')


if __name__ == '__main__':
    main()
