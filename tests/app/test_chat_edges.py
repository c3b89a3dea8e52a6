#!/usr/bin/env python3
"""
test_chat_edges.py CHAT MAKE_MODEL: edge cases of a chat at a terminal, in both painters where they could differ:
hang-ups, keys during an answer, editors that fail, locales, full contexts. With a scripted generator.
"""
import json
import os
import re
import signal

from support.program_case import PROGRAM, main
from support.terminal_case import PAINTERS, PROMPT, Terminal, TerminalCase, in_pieces


class Ends(TerminalCase):
    def test_an_open_fence_is_not_sent_at_a_hang_up(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            terminal.send(b'"""\rhalf a message\rmore')
            terminal.expect(b'more')
            terminal.hang_up()
            self.assertEqual(terminal.process.wait(30), 129)
            self.assertFalse(os.path.exists(self.state('last.json')))
            self.assertFalse(os.path.exists(self.state('history')))

    def test_a_signal_before_the_first_token_keeps_the_question(self):
        for words in PAINTERS:
            for number, code in ((signal.SIGHUP, 129), (signal.SIGTERM, 143)):
                self.fake('\x1dword', hold=self.gate(), begun=self.path('begun'))
                terminal = self.ready(*words, '--session', self.path('kept.json'))
                terminal.send(b'a question\r')
                self.wait_for(lambda: os.path.exists(self.path('begun')))
                terminal.process.send_signal(number)
                self.assertEqual(terminal.process.wait(30), code)
                self.assertEqual([m['content'] for m in self.saved(self.path('kept.json'))], ['a question'])
                os.remove(self.path('kept.json'))
                os.remove(self.path('begun'))

    def test_edit_during_an_answer_says_where_the_message_is(self):
        for words in PAINTERS:
            self.fake('word \x1d.', hold=self.gate())
            terminal = self.ready(*words)
            self.ask_held(terminal, b'first question\r')
            self.says_in(terminal, b'/edit 1\rhalf typed', b'half typed')
            terminal.settle()
            self.write('gate', '')
            terminal.expect(rb'not sent: first question(?s:.*)taken back(?s:.*)conversation is\s+empty')
            self.assertNotIn(b'moved back', terminal.seen)
            terminal.send(b'\x03')
            terminal.settle()
            self.leave(terminal)

    def test_a_message_that_is_edited_stays_in_the_file_until_it_is_sent(self):
        """Neither an end without sending it nor a kill loses it or the later messages."""
        path = self.path('edited.json')
        said = lambda: [m['content'] for m in self.saved(path) if m['role'] == 'user']
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words, '--session', path)
            for line in (b'one\r', b'two\r'):
                self.says_in(terminal, line)
            self.says_in(terminal, b'/edit 1\r', rb'moved back to the editor(?s:.*)one')
            terminal.send(b'\x03')
            self.leave(terminal)
            self.assertEqual(said(), ['one', 'two'])
            terminal = self.ready(*words, '--session', path)
            self.says_in(terminal, b'/edit 2\r', rb'moved back to the editor(?s:.*)two')
            terminal.process.kill()
            terminal.process.wait(30)
            self.assertEqual(said(), ['one', 'two'])
            terminal = self.ready(*words, '--session', path)
            self.says_in(terminal, b'/edit 1\r', rb'moved back to the editor(?s:.*)one')
            self.says_in(terminal, b' more\r')
            self.leave(terminal)
            self.assertEqual(said(), ['one more'])
            os.remove(path)

    def test_a_hang_up_during_an_answer_saves_it_and_ends(self):
        for words in PAINTERS:
            self.fake('word ', endless=1, token_ms=5)
            terminal = self.ready(*words)
            terminal.send(b'x\r')
            terminal.expect(rb'Esc stops(?s:.*)tok/s')
            terminal.wait_a_bit(0.3)
            terminal.hang_up()
            self.assertEqual(terminal.process.wait(30), 129)
            self.assertTrue(self.saved(self.state('last.json'))[1]['content'].startswith('word '))

    def test_a_notice_begins_a_row_below_the_prompt_of_a_typed_script(self):
        self.fake('fine', load_until=self.gate())
        terminal, _ = self.typed()
        terminal.send(b'half')
        terminal.expect(rb'>>> half')
        self.write('gate', '')
        terminal.expect(rb'loaded in[^\n]*\n>>> ')
        self.assertRegex(terminal.seen, rb'>>> half\r?\n')
        terminal.send(b' a line\n')
        terminal.expect(rb'\[\d+ tok[^\n]*\n>>> $')
        terminal.send(b'\x04')
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.seen.endswith(b'\n'), terminal.seen[-100:])

    def test_an_open_fence_at_the_end_of_input_is_a_warning(self):
        terminal, path = self.typed()
        terminal.send(b'"""\nhalf a message\n\x04')
        terminal.expect(rb'warning: .*"""')
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(os.path.getsize(path), 0)

    def test_a_flag_that_is_off_contradicts_no_option(self):
        self.fake('ok')
        terminal = self.open('--plain', '--no-plain', '--tui', '-p', 'x')
        self.assertEqual(terminal.wait(), 0, terminal.seen)
        self.refuses(2, '--plain', '--tui', '-p', 'x')

    def test_a_prompt_option_at_a_terminal_gives_one_answer(self):
        self.fake('the answer')
        for words in (['-p', 'a question'], ['a', 'question'], ['--tui', 'a question']):
            terminal = self.open(*words)
            self.assertEqual(terminal.wait(), 0)
            self.assertEqual(re.split(rb'[\r\n]+', terminal.seen)[-2], b'the answer')
            self.assertNotIn(b'>>>', terminal.seen)
            self.assertEqual(terminal.modes(), terminal.before)

    def test_a_prompt_option_with_i_begins_a_chat(self):
        self.fake('the answer', 'another')
        for words in PAINTERS:
            terminal = self.open('-i', *words, 'a question')
            terminal.expect(b'a question(?s:.*)' + in_pieces(b'the answer') + rb'(?s:.*)\[\d+ tok')
            self.says_in(terminal, b'more\r', in_pieces(b'another') + rb'(?s:.*)\[\d+ tok')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['a question', 'more'])

    def test_without_a_home_one_warning_is_printed(self):
        self.fake('one', 'two')
        del self.env['HOME']
        for words in PAINTERS:
            terminal = self.ready(*words)
            for text in (b'x\r', b'y\r'):
                self.says_in(terminal, text)
            self.leave(terminal)
            warnings = re.findall(rb'HOME is (?:not )?set', terminal.seen.split(b'\x1b[?1049l')[0])
            self.assertEqual(len(warnings), 1, terminal.seen)
        terminal = self.ready('--private')
        self.leave(terminal)
        self.assertNotIn(b'HOME', terminal.seen)
        self.assertEqual(self.says('-p', 'x'), b'one\n')  # a script saves nothing anyway


class DuringAnAnswer(TerminalCase):
    def test_control_d_is_ignored(self):
        for words in PAINTERS:
            self.fake('first \x1dand last', 'fine', hold=self.gate())
            terminal = self.ready(*words)
            self.ask_held(terminal, b'x\r')
            terminal.send(b'\x04')
            self.says_in(terminal, b'ahead', b'ahead')  # this shows that the keys were read
            terminal.send(b'\x15')
            self.write('gate', '')
            terminal.expect(rb'\[\d+ tok')
            self.says_in(terminal, b'y\r')
            self.assertEqual(self.messages('assistant')[0], 'first and last')
            self.leave(terminal)

    def test_control_l_repaints_while_the_answer_continues(self):
        for words, cleared in (([], rb'\x1b\[H\x1b\[2?J'), (['--tui'], rb'\x1b\[H\x1b\[2?J')):
            self.fake('first \x1dand last', hold=self.gate())
            terminal = self.ready(*words)
            self.ask_held(terminal, b'x\r')
            self.says_in(terminal, b'\x0c', cleared + b'(?s:.*)first(?s:.*)generating')
            start = len(terminal.seen)
            self.write('gate', '')
            terminal.expect(in_pieces(b'last') + rb'(?s:.*)\[\d+ tok', start=start)
            terminal.settle()
            self.assertNotRegex(terminal.seen[start:], cleared)
            self.assertEqual(self.messages('assistant'), ['first and last'])
            self.leave(terminal)


class Editing(TerminalCase):
    def test_the_users_inputrc_is_read_for_bitnet_chat(self):
        self.write_inputrc('$if bitnet-chat\n"\\C-t": "ours "\n$else\n"\\C-t": "theirs "\n$endif\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.says_in(terminal, b'\x14x\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['ours x'])

    def test_home_and_end_go_to_the_ends_of_a_line_and_then_of_the_message(self):
        up = b'\x1b[A'
        for home, end in ((b'\x01', b'\x05'), (b'\x1b[H', b'\x1b[F'), (b'\x1bOH', b'\x1bOF')):
            for words in PAINTERS:
                terminal = self.ready(*words)
                self.says_in(terminal, b'one\x1b\rtwo\x1b\rthree' + up + home + b'a' + end + b'b' + home + home + b'c' +
                             end + b'd' + end + end + b'e\r')
                self.leave(terminal)
                self.assertEqual(self.messages(), ['coned\natwob\nthreee'])

    def test_control_k_and_control_u_delete_up_to_the_ends_of_a_line(self):
        up, down, home, end, kill, discard, yank = b'\x1b[A', b'\x1b[B', b'\x01', b'\x05', b'\x0b', b'\x15', b'\x19'
        lines = b'one\x1b\rtwo\x1b\rthree'
        paste = b'\x1b[200~' + b'line\r' * 10 + b'\x1b[201~'
        cases = ((lines + up + home + kill + b'x', 'one\nx\nthree'),
                 (lines + up + home + kill + kill + b'x', 'one\nxthree'),
                 (lines + up + home + kill + kill + end + yank, 'one\nthreetwo\n'),
                 (lines + up + kill + b'x', 'one\ntwoxthree'),
                 (lines + up + home + kill + b'\x1f', 'one\ntwo\nthree'),  # Ctrl-_
                 (lines + home + b'\x06' + kill + b'x', 'one\ntwo\ntx'),
                 (lines + up + discard + b'x', 'one\nx\nthree'),
                 (lines + up + discard + discard + b'x', 'onex\nthree'),
                 (lines + up + discard + discard + down + end + yank, 'one\nthree\ntwo'),
                 (lines + up + b'\x02' + discard + b'x', 'one\nxo\nthree'),
                 (lines + up + up + discard + b'x', 'x\ntwo\nthree'),
                 (lines + up + home + b'a' + paste + home + kill + b'x', 'one\nx\nthree'),
                 (b'one' + home + kill + b'x' + yank, 'xone'),  # one line: as in a shell
                 (b'one' + discard + b'x' + yank, 'xone'))
        for words in PAINTERS:
            terminal = self.ready(*words)
            for keys, _ in cases:
                self.says_in(terminal, keys + b'\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), [text for _, text in cases])

    def test_an_editor_that_fails_leaves_the_message(self):
        script = self.write('fails', '#!/bin/sh\necho other > "$1"\nexit 1\n')
        os.chmod(script, 0o755)
        for editor in (script, '/no/such/editor'):
            self.env['EDITOR'] = editor
            for words in PAINTERS:
                terminal = self.ready(*words)
                self.says_in(terminal, b'my text\x18\x05', b'the message is unchanged')
                self.says_in(terminal, b', kept\r')
                self.leave(terminal)
                self.assertEqual(self.messages(), ['my text, kept'])

    def test_a_full_disk_is_the_reason_why_no_editor_runs(self):
        self.env['EDITOR'] = 'true'
        words = ['sh', '-c', 'ulimit -f 1; exec "$0" "$@"', PROGRAM, self.model, '--private']
        for more in PAINTERS:
            terminal = self.start(words + more)
            terminal.expect(rb'loaded in')
            terminal.expect(PROMPT)
            self.says_in(terminal, b'x' * 3000 + b'\x18\x05', rb'File(?s:.{,80})too(?s:.{,80})large')
            terminal.send(b'\x15')
            self.leave(terminal)

    def test_a_blank_message_is_not_sent(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            for keys in (b'\r', b'   \r', b' \n \t\r', b'\x1b[200~  \r\n \x1b[201~\r', b'"""\r"""\r'):
                terminal.send(keys)
            self.says_in(terminal, b'text\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['text'])
            self.assertEqual(len(re.findall(rb'\[\d+ tok', terminal.seen.split(b'\x1b[?1049l')[0])), 1)


class SpecialWords(TerminalCase):
    """The text of a special token in user input is ordinary text."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.words_model = cls.make('words.gguf', '--vocab', 'llama3-like', '--n-vocab', '1000')

    def count(self, *args, stdin=b''):
        done = self.chat('--json', *args, stdin=stdin, model=self.words_model)
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        return json.loads(done.stdout)['prompt_tokens']

    def test_special_tokens_in_any_input_are_text(self):
        for text in ('<|eot_id|>', '<|begin_of_text|>', '<|end_header_id|>'):
            done = self.chat('-i', stdin=f'/tokens {text}\n'.encode(), model=self.words_model)
            self.assertGreater(int(re.search(rb'(\d+) tokens', done.stderr).group(1)), 7)
            self.assertNotIn(text.encode(), done.stderr)
            path = self.write('special.txt', text)
            for with_it, without in ((dict(stdin=text.encode()), dict(stdin=b'x')),
                                     (dict(args=['-s', text, 'x']), dict(args=['-s', 'x', 'x'])),
                                     (dict(args=['--raw', text]), dict(args=['--raw', 'x'])),
                                     (dict(args=['-f', path, 'x']), dict(args=['-f', self.write('x.txt', 'x'), 'x']))):
                counts = [self.count(*how.get('args', []), stdin=how.get('stdin', b'')) for how in (with_it, without)]
                self.assertGreater(counts[0] - counts[1], 5, (text, with_it))

    def test_special_tokens_typed_at_a_terminal_are_text(self):
        terminal = Terminal([PROGRAM, self.words_model], self.env, columns=200)
        self.addCleanup(terminal.close)
        terminal.expect(rb'loaded in')
        counts = [int(re.search(rb'prompt (\d+)', self.says_in(terminal, text, rb'prompt \d+ ')).group(1))
                  for text in (b'x\r', b'<|eot_id|>\r')]
        self.assertGreater(counts[1] - counts[0], 5)
        self.leave(terminal)
        self.assertEqual(self.messages(), ['x', '<|eot_id|>'])


class Locales(TerminalCase):
    def test_without_a_utf8_locale_characters_stay_whole(self):
        for variables in ({'LC_ALL': 'C'}, {'LC_ALL': 'POSIX'}, {'LANG': 'C'}, {}, {'LC_ALL': 'xx_YY'}):
            self.env.pop('LC_ALL', None)
            self.env.pop('LANG', None)
            self.env.update(variables)
            for words in PAINTERS:
                self.fake('\u6f22\u5b57 \u00e9')
                terminal = self.ready(*words)
                seen = self.says_in(terminal, '\u6f22\u5b57\u00e9\x7f\x7fx\r')
                for character in '\u6f22\u5b57\u00e9':
                    self.assertIn(character.encode(), seen, variables)
                self.assertNotIn('\ufffd'.encode(), seen)
                self.leave(terminal)
                self.assertEqual(self.messages(), ['\u6f22x'], variables)
            self.assertEqual(self.says('-p', '\u00e9'), '\u6f22\u5b57 \u00e9\n'.encode())
            self.env.pop('LC_ALL', None)


class Overflow(TerminalCase):
    def test_dropped_turns_are_reported_and_marked(self):
        for words in PAINTERS:
            self.fake('ok', n_ctx=120)
            terminal = self.ready(*words)
            for letter in (b'a', b'b'):
                self.says_in(terminal, letter * 30 + b'\r')
            seen = self.says_in(terminal, b'c' * 30 + b'\r')
            self.assertRegex(seen, rb'context: dropped \d oldest turns? \(\d+ tok\), re-reading \d+ tok')
            self.says_in(terminal, b'/context\r', rb'dropped so far: \d')
            self.says_in(terminal, b'/history\r', rb'1 \(no longer in the context\)> aaa')
            self.leave(terminal)
            self.assertEqual(len(self.messages()), 3)


class Row(TerminalCase):
    def test_no_status_row_is_painted_while_the_cursor_is_in_the_margin(self):
        self.fake('X' * 40 + '\x1d' + 'y' * 10 + '\x1d', hold=self.gate())
        terminal = self.ready('--no-wrap', rows=10, columns=40)
        self.ask_held(terminal, b'go\r')
        self.assertEqual(terminal.seen.count(b'X'), 40)
        start = len(terminal.seen)
        terminal.send(b'a')  # a reason to repaint the status row
        terminal.wait_a_bit(1.5)
        self.assertEqual(terminal.seen[start:], b'')
        terminal.send(b'\x15')
        self.write('gate', '')
        terminal.expect(b'y(?s:.*)generating', start=start)
        terminal.expect(in_pieces(b'y' * 10), start=start)
        self.write('gate', '')
        terminal.expect(rb'\[\d+ tok', start=start)
        self.leave(terminal)


if __name__ == '__main__':
    main()
