#!/usr/bin/env python3
"""
test_full_terminal.py CHAT MAKE_MODEL: the full-screen painter on a pseudo-terminal. At each kind of exit the
terminal's modes, bracketed paste and the alternate screen are restored.
"""
import os
import re
import resource
import signal
import time

from support.program_case import main
from support.terminal_case import ENTER, LEAVE, TerminalCase


class FullTerminalCase(TerminalCase):
    def ready(self, *args, **size):
        """A chat in full screen with a loaded model."""
        terminal = self.open('--tui', *args, **size)
        terminal.expect(rb'loaded in')
        return terminal

    def ask(self, terminal, text, until=rb'\[\d+ tok'):
        start = len(terminal.seen)
        terminal.send(text + '\r')
        terminal.expect(until, start=start)
        terminal.settle()  # only differences are written: no text is certain to appear
        return terminal.seen[start:]

    def left_clean(self, terminal, code):
        super().left_clean(terminal, code)
        self.assertIn(ENTER, terminal.seen)
        self.assertEqual(terminal.seen.count(ENTER), terminal.seen.count(LEAVE))
        self.assertLess(terminal.seen.rfind(ENTER), terminal.seen.rfind(LEAVE))


class WaysOut(FullTerminalCase):
    def test_quit_and_control_d_leave_with_0(self):
        for keys in (b'/quit\r', b'\x04'):
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
            terminal.expect(rb'generating')  # the text of the answer may be written in pieces
            terminal.process.send_signal(number)
            self.left_clean(terminal, code)

    def test_fatal_signals_restore_the_terminal(self):
        for number in (signal.SIGQUIT, signal.SIGABRT):
            terminal = self.ready()
            resource.prlimit(terminal.process.pid, resource.RLIMIT_CORE, (0, 0))
            terminal.process.send_signal(number)
            self.left_clean(terminal, -number)

    def test_a_failed_load_restores_the_terminal_and_is_exit_3(self):
        self.fake(load_ms=200, load_error=1)
        terminal = self.open('--tui')
        self.left_clean(terminal, 3)
        message = terminal.seen.rindex(b'bitnet-chat: tensor')
        self.assertLess(terminal.seen.rindex(LEAVE), message)

    def test_a_second_control_c_leaves_a_stuck_engine(self):
        self.fake('never', read_stop=0, stuck=1, begun=self.gate('begun'))
        terminal = self.ready()
        self.says_in(terminal, b'x\r', rb'Esc stops \|')
        self.read_until(terminal, lambda: os.path.exists(self.path('begun')))  # the engine is in the middle of a token
        start = len(terminal.seen)
        terminal.send(b'\x03')
        terminal.expect(b'stopp', start=start)
        self.assertIsNone(terminal.process.poll())
        for _ in range(60):
            if terminal.process.poll() is None:
                terminal.send(b'\x03')
                terminal.wait_a_bit(0.5)
        self.left_clean(terminal, 130)

    def test_a_stopped_process_restores_the_terminal_and_continues(self):
        self.fake('fine')
        terminal = self.half_typed_and_stopped('--tui')
        self.assertEqual(terminal.seen.count(ENTER), terminal.seen.count(LEAVE))
        start = len(terminal.seen)
        terminal.send(b'\n')
        terminal.expect(b'half a line', start=start)
        terminal.send(b'!\r')
        terminal.expect(rb'\[\d+ tok', start=start)
        self.leave(terminal)
        self.assertEqual(self.messages(), ['half a line!'])

    def test_changing_painters_is_balanced(self):
        terminal = self.ready()
        for _ in range(3):
            start = len(terminal.seen)
            terminal.send(b'\x1bOQ')
            terminal.expect(re.escape(LEAVE), start=start)
            terminal.expect(b'>>> ', start=start)
            start = len(terminal.seen)
            terminal.send(b'\x1b[12~')
            terminal.expect(re.escape(ENTER), start=start)
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_the_editor_runs_on_the_normal_screen(self):
        self.use_editor('printf "%s and more\\n" "$(cat "$1")" > "$1"\necho here >&2\n')
        terminal = self.ready()
        terminal.send(b'some\x18\x05')
        terminal.expect(rb'1049l(?s:.*)here(?s:.*)1049h')
        self.ask(terminal, '')
        self.assertEqual(self.messages(), ['some and more'])
        self.leave(terminal)


class Editing(FullTerminalCase):
    def test_new_lines_pastes_and_wide_characters(self):
        self.fake(n_ctx=20000)
        terminal = self.ready()
        self.ask(terminal, 'one\ntwo')
        self.ask(terminal, 'one\x1b\rtwo')
        self.ask(terminal, '"""one\rtwo"""')
        self.ask(terminal, '\u6f22\u5b57\u00e9\x7f\x7fx')
        self.ask(terminal, '\x1b[200~a\rb\x1b[5~\nc\x1b[201~')
        long = ''.join(f'line {i}\n' for i in range(500))
        self.ask(terminal, 'see: \x1b[200~' + long.replace('\n', '\r') + '\x1b[201~ok?')
        messages = self.messages()
        self.assertEqual(messages[:4], ['one\ntwo'] * 3 + ['\u6f22x'])
        self.assertEqual(messages[5], f'see: {long}ok?')
        self.assertNotIn(b'line 250', terminal.seen)

    def test_lines_on_standard_error_do_not_keep_the_program_busy(self):
        self.fake('word ' * 8, noise=2, token_ms=50)  # 40 tokens, one for each byte
        terminal = self.ready()
        before = terminal.cpu_seconds()
        terminal.send('go\r')
        terminal.expect(b'from a library')  # at the end of the answer, after two seconds
        self.assertLess(terminal.cpu_seconds() - before, 0.7)

    def test_lines_on_standard_error_before_a_suspension_are_shown(self):
        terminal = self.ready()
        terminal.send(b'half')
        terminal.expect(b'half')
        process = terminal.process
        process.send_signal(signal.SIGSTOP)
        with open(f'/proc/{process.pid}/fd/2', 'wb') as file:
            file.write(b'from a library\n')
        # The program handles both signals before it reads the line.
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTSTP)
        terminal.expect(b'from a library')
        terminal.send(b'\x15')
        self.leave(terminal)

    def test_pasting_a_megabyte_is_fast(self):
        terminal = self.ready('-c', '4000000')
        self.pastes_in_linear_time(terminal)
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_a_paste_without_an_end_mark_ends(self):
        terminal = self.ready()
        terminal.send(b'\x1b[200~lost')
        terminal.expect(b'lost')
        terminal.send(b'\x15/quit\r')
        self.left_clean(terminal, 0)

    def test_a_split_escape_sequence_is_one_key(self):
        self.fake('word ' * 200)
        terminal = self.ready(rows=12)
        self.ask(terminal, 'x')
        start = len(terminal.seen)
        for _ in range(20):  # on a busy machine the two halves may arrive too far apart
            terminal.send(b'\x1b[')
            time.sleep(0.02)
            terminal.send(b'5~')
            terminal.read(0.2)
            if b'more below' in terminal.seen[start:]:
                break
            terminal.send(b'\x15')
        self.assertIn(b'more below', terminal.seen[start:])

    def test_control_c_clears_and_never_leaves(self):
        terminal = self.ready()
        for _ in range(3):
            start = len(terminal.seen)
            terminal.send(b'some text')
            terminal.expect(b'some text', start=start)
            terminal.send(b'\x03')
            terminal.settle()
        for _ in range(60):  # two that arrive together count as one
            if b'Ctrl-D or /quit leaves' not in terminal.seen:
                terminal.send(b'\x03')
                terminal.settle()  # another Ctrl-C would discard output that was not read yet
        self.assertIn(b'Ctrl-D or /quit leaves', terminal.seen)
        self.assertIsNone(terminal.process.poll())
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)

    def test_control_c_during_prefill_returns_the_question(self):
        self.fake('never', read_stop=3)
        terminal = self.ready()
        self.says_in(terminal, b'a question\r', rb'Esc stops \|')
        self.says_in(terminal, b'\x03', rb'a question')


class Safety(FullTerminalCase):
    def test_the_models_controls_never_reach_the_terminal(self):
        self.fake(b'a\x1b]52;c;eA==\x07b\x9bc\x1b[2Jd\xe2\x80\xaee')
        terminal = self.ready()
        seen = self.ask(terminal, 'x')
        for bad in (b'\x1b]', b'\x07', b'\x9b', b'\x1b[2J', b'\xe2\x80\xae'):
            self.assertNotIn(bad, seen)
        start = len(terminal.seen)
        terminal.send(b'\x0c')  # a repaint writes the text in one piece
        terminal.expect('a\ufffd]52;c;eA==\ufffdb\ufffdc'.encode(), start=start)

    def test_an_unsuitable_terminal_gets_the_inline_painter(self):
        for term, reason in (('dumb', rb"the terminal 'dumb' cannot show a full screen"),
                             ('nonsense', rb"the terminal 'nonsense' cannot show a full screen"),
                             ('', rb'no full screen: TERM is not set')):
            self.env['TERM'] = term
            terminal = self.open('--tui')
            terminal.expect(reason)
            terminal.expect(b'>>> ')
            start = len(terminal.seen)
            terminal.send(b'/ui full\r')
            terminal.expect(reason, start=start)
            terminal.expect(b'>>> ', start=start + 10)
            terminal.send(b'/quit\r')
            TerminalCase.left_clean(self, terminal, 0)
            self.assertNotIn(b'\x1b', terminal.seen)

    def test_options_and_config_choose_the_painter(self):
        config = self.write('config', 'ui = full\n')
        self.env['BITNET_CHAT_CONFIG'] = config
        for words, full in (([], True), (['--inline'], False), (['--plain'], False),
                            (['--ui', 'inline'], False), (['--inline', '--tui'], None)):
            terminal = self.open(*words)
            if full is None:
                self.assertEqual(terminal.wait(), 2)
                continue
            terminal.expect(b'loaded in')
            terminal.send(b'/quit\r')
            self.assertEqual(terminal.wait(), 0)
            self.assertEqual(ENTER in terminal.seen, full, words)

    def test_no_color_leaves_structure_only(self):
        for words, looks in (([], True), (['--color', 'never'], False)):
            terminal = self.ready(*words)
            terminal.expect(b'ready')
            self.assertEqual(bool(re.search(rb'\x1b\[(\d*;)*2m', terminal.seen)), looks, terminal.seen)
            self.assertIn(b'\x1b[7m', terminal.seen.replace(b'\x1b[0;7m', b'\x1b[7m'))
            terminal.close()
            self._cleanups.pop()

    def test_a_resize_storm_down_to_one_cell_survives(self):
        self.fake('some words that do not fit ' * 50, token_ms=2)
        terminal = self.ready()
        terminal.send(b'x\r')
        for rows, columns in ((1, 1), (2, 300), (300, 2), (5, 20), (4, 19), (1, 80), (24, 80)) * 3:
            terminal.resize(rows, columns)
            terminal.read(0.05)
        terminal.expect(rb'\[\d+ tok')
        terminal.settle()
        self.leave(terminal)

    def test_an_idle_screen_costs_nothing(self):
        terminal = self.ready()
        terminal.settle()
        self.assertLessEqual(terminal.percent_of_cpu(3), 1)


if __name__ == '__main__':
    main()
