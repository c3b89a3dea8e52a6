#!/usr/bin/env python3
"""
test_queue.py CHAT MAKE_MODEL: lines that are entered during an answer, or before the program has started, on a
pseudo-terminal and in both painters: their order, taking them back, commands that run at once; what a LF, Esc and
an unbound key are. With a scripted generator.
"""
import os

from support.idle import children_of
from support.program_case import main
from support.terminal_case import PAINTERS, TerminalCase

KINDS = (('xterm', []), ('xterm', ['--tui']), ('xterm', ['--plain']), ('dumb', []))


class QueueCase(TerminalCase):
    def waiting(self, words, *answers):
        """A chat in which the first answer waits for the file `gate` after the word `word`."""
        self.fake('word \x1d.', *answers, hold=self.gate(), waiting=self.gate('waiting'))
        terminal = self.ready(*words)
        terminal.send(b'go\r')
        # The full screen may write the word in pieces.
        self.read_until(terminal, lambda: os.path.exists(self.path('waiting')))
        terminal.settle()
        return terminal

    def sent(self, terminal, n):
        """Wait until n messages are answered. Returns the messages."""
        def done():
            terminal.read(0.02)
            try:
                return len(self.messages('assistant')) == n
            except (FileNotFoundError, ValueError):
                return False
        self.wait_for(done)
        terminal.settle()  # Ctrl-D is ignored until the prompt is back
        return self.messages()

    def use_copying_editor(self):
        """Let Ctrl-X Ctrl-E copy the line to a file."""
        self.use_editor('cp "$1" "$HOME/new" && mv "$HOME/new" "$HOME/edited"\n')

    def edited(self, terminal):
        """The text in the line editor."""
        path = os.path.join(self.home.name, 'edited')
        terminal.send(b'\x18\x05')
        self.wait_for(lambda: terminal.read(0.02) and False or os.path.exists(path))
        with open(path, encoding='utf-8') as file:
            text = file.read()
        os.unlink(path)
        # The editor has written the file, but may not have ended, and the program sleeps meanwhile.
        self.read_until(terminal, lambda: not children_of(terminal.process.pid))
        terminal.settle()
        return text.rstrip('\n')

    def has_recalled(self, terminal, edited, ups, recalled):
        """The editor has the text `edited`. The key Up, pressed `ups` times, brings `recalled`. Then the chat ends."""
        self.assertEqual(self.edited(terminal), edited)
        terminal.send(b'\x1b[A' * ups)
        self.assertEqual(self.edited(terminal), recalled)
        terminal.send(b'\x03')
        terminal.settle()
        self.leave(terminal)


class Queue(QueueCase):
    def test_lines_wait_for_the_answer_and_are_sent_in_order(self):
        for term, words in KINDS:
            self.env['TERM'] = term
            terminal = self.waiting(words, 'two', 'three', 'four', 'five')
            terminal.send(b'one\r')
            terminal.send(b'\x1b[200~two\rlines\x1b[201~\rthree\rhalf')
            terminal.settle()
            self.write('gate', '')
            self.assertEqual(self.sent(terminal, 4), ['go', 'one', 'two\nlines', 'three'])
            self.says_in(terminal, b' a line\r', rb'\[\d+ tok')
            self.assertEqual(self.sent(terminal, 5)[4], 'half a line')
            self.leave(terminal)

    def test_without_rows_below_the_answer_a_message_shows_each_waiting_line(self):
        for term, words in KINDS[2:]:
            self.env['TERM'] = term
            terminal = self.waiting(words, 'two', 'three')
            self.says_in(terminal, b'one\r', rb'next: one\r?\n')
            self.says_in(terminal, b'/set top-k 5\r', rb'next: /set top-k 5\r?\n')
            self.says_in(terminal, b'l' * 300 + b'\r', rb'next: l+\.\.\.\r?\n')
            self.says_in(terminal, b'\x1b[A', rb'taken back\r?\n')
            self.says_in(terminal, b'\x15x\r', rb'next: x\r?\n')
            self.write('gate', '')
            self.assertEqual(self.sent(terminal, 3), ['go', 'one', 'x'])
            self.leave(terminal)

    def test_commands_wait_for_their_turn(self):
        for words in PAINTERS:
            terminal = self.waiting(words, 'two', 'three')
            terminal.send(b'one\r/undo\r/set temp 0.25\rtwo\r/quit\r')
            terminal.settle()
            self.write('gate', '')
            self.left_clean(terminal, 0)
            self.assertEqual(self.messages(), ['go', 'two'])
            self.assertIn(b'temp = 0.25', terminal.seen)

    def test_a_command_that_only_shows_something_runs_at_once(self):
        for term, words in KINDS:
            self.env['TERM'] = term
            terminal = self.waiting(words)
            for command, said in ((b'/tokens ab', rb'2 tokens'), (b'/help undo', rb'removes your last message'),
                                  (b'/info', rb'fake'), (b'/stats', rb'memory'), (b'/context', rb'free'),
                                  (b'/history', b'go'), (b'/set', b'top-k'), (b'/sessions', b'no conv')):
                self.says_in(terminal, command + b'\r', said)
            self.write('gate', '')
            self.assertEqual(self.sent(terminal, 1), ['go'])
            self.assertEqual(self.messages('assistant'), ['word .'])
            self.leave(terminal)

    def test_up_takes_back_the_last_line(self):
        for words in PAINTERS:
            terminal = self.waiting(words, 'two', 'three')
            terminal.send(b'one\rtwo\r')
            terminal.settle()
            terminal.send(b'\x1b[A')
            terminal.send(b'!')
            terminal.settle()
            self.write('gate', '')
            self.assertEqual(self.sent(terminal, 2), ['go', 'one'])
            terminal.settle()
            terminal.send(b'\r')
            self.assertEqual(self.sent(terminal, 3), ['go', 'one', 'two!'])
            self.leave(terminal)

    def test_a_stop_returns_a_single_line_to_the_editor(self):
        self.use_copying_editor()
        for term, words in KINDS:
            for key in (b'\x1b', b'\x03'):
                self.env['TERM'] = term
                terminal = self.waiting(words, 'again')
                terminal.send(b'one \x1b[200~' + b'paste\r' * 20 + b'\x1b[201~\r')
                terminal.settle()
                self.says_in(terminal, key, b'stopped')
                terminal.settle()
                self.assertEqual(self.messages(), ['go'])
                self.says_in(terminal, b'!\r', rb'\[\d+ tok')
                self.assertEqual(self.sent(terminal, 2)[1], 'one ' + 'paste\n' * 20 + '!')
                self.leave(terminal)

    def test_a_stop_never_joins_lines(self):
        """Each of several lines, and the unfinished text, stays a message of its own."""
        for term, words in KINDS:
            for typed, sent in ((b'', 'two'), (b'three', 'three!')):
                self.env['TERM'] = term
                terminal = self.waiting(words, 'again', 'and again')
                terminal.send(b'one\r\x1b[200~' + b'paste\r' * 20 + b'\x1b[201~\rtwo\r' + typed)
                terminal.settle()
                self.says_in(terminal, b'\x03', rb'(?s)stopped.*not sent: one.*not sent: \[pasted 1.*not sent: two'
                                                rb'.*Up recalls them, the last one first')
                terminal.settle()
                self.assertEqual(self.messages(), ['go'])
                self.says_in(terminal, b'!\r' if typed else b'\x1b[A\r', rb'\[\d+ tok')
                self.assertEqual(self.sent(terminal, 2)[1], sent)
                self.says_in(terminal, b'\x1b[A' * (4 if typed else 3) + b'\r', rb'\[\d+ tok')
                self.assertEqual(self.sent(terminal, 3)[2], 'one')
                self.leave(terminal)

    def test_lines_that_are_not_sent_are_shown_after_the_stopped_answer(self):
        """The painters hold the end of the answer back, because its word may go on."""
        for term, words in KINDS:
            for key in (b'\x1b', b'\x03'):
                self.env['TERM'] = term
                self.fake('begun unfin\x1d', hold=self.gate(), waiting=self.gate('waiting'))
                terminal = self.ready(*words)
                self.says_in(terminal, b'go\r', b'begun')
                self.read_until(terminal, lambda: os.path.exists(self.path('waiting')))
                os.unlink(self.path('waiting'))
                terminal.send(b'one\rtwo\r')
                terminal.settle()
                start = len(terminal.seen)
                self.says_in(terminal, key, rb'(?s)stopped.*not sent: one.*not sent: two.*Up recalls them')
                self.assertNotIn(b'not sent', terminal.seen[start:terminal.seen.index(b'stopped', start)])
                terminal.settle()
                self.assertEqual(self.messages('assistant'), ['begun unfin'])
                self.leave(terminal)

    def test_lines_of_a_second_stop_are_shown_with_those_of_the_first(self):
        """The answer ends by itself after the stops."""
        for words in PAINTERS:
            self.fake('begun unfin\x1d', 'again', hold=self.gate(), waiting=self.gate('waiting'), stuck=1)
            terminal = self.ready(*words)
            self.says_in(terminal, b'go\r', b'begun')
            self.read_until(terminal, lambda: os.path.exists(self.path('waiting')))
            os.unlink(self.path('waiting'))
            terminal.send(b'one\rtwo\r')
            terminal.settle()
            for keys in (b'\x1b', b'three\rfour\r', b'\x1b'):  # a second Ctrl-C could end the program
                terminal.send(keys)
                terminal.settle()
            self.assertNotIn(b'not sent', terminal.seen)
            terminal.send(b'\x1b[A')  # the input history has them at once
            terminal.settle()
            self.write('gate', '')
            terminal.expect(rb'(?s)unfin.*\d tok' + b''.join(b'.*not sent: ' + line for line in
                                                      (b'one', b'two', b'three', b'four')) + b'.*newest lines')
            terminal.settle()
            self.assertEqual(self.messages(), ['go'])
            self.says_in(terminal, b'\r', rb'\[\d+ tok')
            self.assertEqual(self.sent(terminal, 2)[1], 'four')
            self.leave(terminal)

    def test_a_stop_does_not_change_the_text_that_is_typed(self):
        self.use_copying_editor()
        for words in PAINTERS:
            terminal = self.waiting(words)
            terminal.send(b'one\rhalf line\x1bb')  # Alt-B: the cursor is before "line"
            terminal.settle()
            self.says_in(terminal, b'\x03', rb'(?s)not sent: one.*Up recalls it')
            terminal.settle()
            terminal.send(b'a ')
            self.assertEqual(self.edited(terminal), 'half a line')
            terminal.send(b'\x03')
            terminal.settle()
            self.leave(terminal)

    def test_a_stop_says_where_the_lines_are_if_up_does_not_recall_them(self):
        """Up goes on from the entry that was recalled."""
        self.use_copying_editor()
        for words in PAINTERS:
            for lines, newest, said in ((b'one\r', 'one', rb'it is the newest line of'),
                                        (b'one\rtwo\r', 'two', rb'they are the newest lines')):
                terminal = self.waiting(words)
                terminal.send(lines + b'x')
                terminal.settle()
                terminal.send(b'\x1b[A')
                terminal.settle()
                self.says_in(terminal, b'\x03', rb'(?s)not sent: one.*' + said)
                self.assertNotIn(b'Up recalls', terminal.seen)
                terminal.settle()
                terminal.send(b'\x1b[B' * 9 + b'\x1b[A')  # Down to the end of the input history, then Up once
                self.assertEqual(self.edited(terminal), newest)
                terminal.send(b'\x03')
                terminal.settle()
                self.leave(terminal)

    def test_a_stop_before_the_first_token_of_a_retry_returns_a_single_line(self):
        self.use_copying_editor()
        for words in PAINTERS:
            self.fake('one', b'\x1d', hold=self.gate(), begun=self.gate('begun'))
            terminal = self.ready(*words)
            self.says_in(terminal, b'go\r')
            terminal.settle()
            os.unlink(self.path('begun'))
            terminal.send(b'/retry\r')
            self.read_until(terminal, lambda: os.path.exists(self.path('begun')))
            self.says_in(terminal, b'next\r', b'next')
            terminal.settle()
            self.says_in(terminal, b'\x03', b'stopped')
            terminal.settle()
            self.assertEqual(self.edited(terminal), 'next')
            self.assertNotIn(b'not sent', terminal.seen)
            terminal.send(b'\x03')
            terminal.settle()
            self.leave(terminal)

    def test_a_stop_does_not_run_commands(self):
        for words in PAINTERS:
            terminal = self.waiting(words, 'again')
            self.says_in(terminal, b'/set temp 0.5\rone\r/quit\r', b'next: /quit')
            self.says_in(terminal, b'two', b'two')
            self.says_in(terminal, b'\x03', rb'(?s)not sent: /set temp 0\.5.*not sent: /quit')
            terminal.settle()
            self.says_in(terminal, b'\r', rb'\[\d+ tok')
            self.assertEqual(self.sent(terminal, 2)[1], 'two')
            self.says_in(terminal, 2 * b'\x1b[A', b'/quit')
            self.says_in(terminal, 2 * b'\x1b[A' + b'\r', rb'temp = 0\.5')
            self.leave(terminal)

    def test_a_stop_before_the_first_token_returns_the_question(self):
        self.use_copying_editor()
        for words in PAINTERS:
            for typed, edited, ups, recalled in ((b'one\r', 'question', 1, 'one'),
                                                 (b'one\rhalf', 'half', 2, 'one'),
                                                 (b'half', 'half', 1, 'question')):
                self.fake('never', read_stop=3)
                terminal = self.ready(*words)
                terminal.send(b'question\r')
                terminal.expect(rb'Esc stops \|')
                terminal.send(typed)
                terminal.settle()
                self.says_in(terminal, b'\x03', b'(?s)stopped.*not sent: ' + recalled.encode())
                terminal.settle()
                self.has_recalled(terminal, edited, ups, recalled)

    def test_a_message_that_cannot_be_sent_returns_alone(self):
        self.use_copying_editor()
        for words in PAINTERS:
            for typed, edited, ups, recalled in ((b'two\r', 'x' * 300, 1, 'two'),
                                                 (b'half', 'half', 1, 'x' * 300)):
                self.fake('word \x1d.', hold=self.gate(), waiting=self.gate('waiting'), n_ctx=200)
                terminal = self.ready('--overflow', 'stop', *words)
                terminal.send(b'go\r')
                self.read_until(terminal, lambda: os.path.exists(self.path('waiting')))
                terminal.send(b'x' * 300 + b'\r' + typed)
                terminal.settle()
                self.write('gate', '')
                terminal.expect(rb'(?s)reserved for the.*answer.*only.*200')
                terminal.settle()
                self.assertIn(b'not sent: ' + recalled[:10].encode(), terminal.seen)
                self.assertEqual(b'edit the message below' in terminal.seen, edited == 'x' * 300)
                self.assertEqual(self.messages(), ['go'])
                self.has_recalled(terminal, edited, ups, recalled)

    def test_the_lines_follow_a_change_of_painter(self):
        terminal = self.waiting([], 'two', 'three')
        terminal.send(b'one\rhalf')
        terminal.settle()
        self.says_in(terminal, b'\x1bOQ', b'next: one')
        terminal.settle()
        self.says_in(terminal, b' done\r', b'half done')  # ncurses writes only what differs from "next: one"
        terminal.settle()
        self.says_in(terminal, b'\x1bOQ', b'next: half done')
        terminal.settle()
        self.write('gate', '')
        self.assertEqual(self.sent(terminal, 3), ['go', 'one', 'half done'])
        self.leave(terminal)


class BeforeTheStart(QueueCase):
    def test_text_typed_before_the_program_has_started_keeps_its_enter(self):
        for words in PAINTERS:
            self.fake('first', 'second', load_ms=200)
            terminal = self.open(*words)  # the program has not changed the terminal's mode yet
            terminal.send(b'one\rtwo\rthr')
            self.assertEqual(self.sent(terminal, 2), ['one', 'two'])
            terminal.settle()
            terminal.send(b'ee\r')
            self.assertEqual(self.sent(terminal, 3), ['one', 'two', 'three'])
            self.leave(terminal)


class LineFeeds(QueueCase):
    def test_a_line_feed_at_the_end_of_a_read_sends_the_line(self):
        for words in PAINTERS:
            self.fake('answer')
            terminal = self.ready(*words)
            terminal.send(b'from a program\n')
            self.assertEqual(self.sent(terminal, 1), ['from a program'])
            terminal.settle()
            terminal.send(b'with both\r\n')
            self.assertEqual(self.sent(terminal, 2)[1], 'with both')
            terminal.settle()
            terminal.send(b'two\nlines\r')
            self.assertEqual(self.sent(terminal, 3)[2], 'two\nlines')
            self.leave(terminal)

    def test_a_line_feed_alone_is_a_new_line(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.says_in(terminal, b'one', b'one')
            terminal.settle()
            terminal.send(b'\n')
            terminal.settle()
            terminal.send(b'two\x1b\n')  # Alt-Ctrl-J, too
            terminal.settle()
            terminal.send(b'three\r')
            self.assertEqual(self.sent(terminal, 1), ['one\ntwo\nthree'])
            self.leave(terminal)

    def test_a_line_feed_in_a_paste_is_text(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            # Not settle: two seconds after its last byte, a paste without an end mark ends.
            terminal.send(b'\x1b[200~one\n')
            terminal.wait_until_read()
            terminal.send(b'two\n')
            terminal.wait_until_read()
            terminal.send(b'three\x1b[201~\r')
            self.assertEqual(self.sent(terminal, 1), ['one\ntwo\nthree'])
            self.leave(terminal)


class Escape(QueueCase):
    def test_escape_at_the_prompt_does_not_change_a_later_key(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            for n_escapes in (1, 3):
                terminal.send(b'\x1b' * n_escapes)
                terminal.settle()  # longer than the program waits for the rest of a key
                self.says_in(terminal, b'/tokens ab\r', b'2 tokens')
            terminal.settle()
            terminal.send(b'one two\x1bb\x1b[Dx\r')  # Alt-B and an arrow key still work
            self.assertEqual(self.sent(terminal, 1), ['onex two'])
            self.leave(terminal)

    def with_history(self, words):
        """A chat with earlier entries. The first answer waits, and a search in the history has found "foo one"."""
        self.write_in_home('.local/state/bitnet-chat/history', 'foo one\nbar two\n')
        terminal = self.waiting(words, 'two', 'three')
        terminal.send(b'waits\r')
        terminal.settle()
        self.says_in(terminal, b'\x12fo', rb'oo one')
        terminal.settle()
        return terminal

    def test_a_line_that_is_sent_during_a_search_does_not_change_what_it_found(self):
        for words in PAINTERS:
            terminal = self.with_history(words)
            self.write('gate', '')
            self.assertEqual(self.sent(terminal, 2), ['go', 'waits'])
            terminal.send(b'\r')
            self.assertEqual(self.sent(terminal, 3)[2], 'foo one')
            self.leave(terminal)

    def test_a_stop_during_a_search_keeps_what_it_found(self):
        self.use_copying_editor()
        for words in PAINTERS:
            terminal = self.with_history(words)
            terminal.send(b'\x03')  # Ctrl-C stops the answer
            terminal.settle()
            self.assertEqual(self.edited(terminal), 'foo one')
            terminal.send(b'\x1b>\x1b[A')  # Alt->: the end of the history
            self.assertEqual(self.edited(terminal), 'waits')
            terminal.send(b'\x03')
            self.leave(terminal)

    def test_a_search_ends_when_the_painter_changes(self):
        self.use_copying_editor()
        for words in PAINTERS:
            terminal = self.with_history(words)
            self.write('gate', '')
            self.sent(terminal, 2)
            terminal.send(b'\x15\x12fo')
            terminal.settle()
            terminal.send(b'\x1bOQ')  # F2
            terminal.settle()
            terminal.send(b' more')
            self.assertEqual(self.edited(terminal), 'foo one more')
            terminal.send(b'\x03')
            self.leave(terminal)

    def test_a_recalled_entry_that_was_changed_and_searched_is_recalled_again(self):
        """A search stores the changes of the entry; later ones, and the end of the line, must not free them twice."""
        for words in PAINTERS:
            for end in (b'\x03', b'\x1bOQ\x1bOQ\x03'):  # Ctrl-C, or F2
                terminal = self.ready(*words)
                self.says_in(terminal, b'/tokens ab\r', b'2 tokens')
                for keys in (b'\x1b[A', b'x', b'\x12tok\x1b[C', b'y', end, b'\x1b[A', b'x', end, b'\x1b[A', b'\x03'):
                    terminal.send(keys)
                    terminal.settle()
                self.says_in(terminal, b'/tokens abc\r', b'3 tokens')
                self.leave(terminal)

    def test_escape_still_reaches_vi_mode_and_ends_a_search(self):
        self.write_inputrc('set editing-mode vi\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.says_in(terminal, b'word', b'word')
            terminal.settle()
            self.says_in(terminal, b'\x1b', b'.')  # the cursor moves left when Readline no longer waits for more
            terminal.settle()
            terminal.send(b'0')
            terminal.settle()
            terminal.send(b'ia \r')
            self.assertEqual(self.sent(terminal, 1), ['a word'])
            self.leave(terminal)

    def sends_in_vi_mode(self, keys, message):
        """In both painters, these keys, which arrive at once, and Enter send the message."""
        self.write_inputrc('set editing-mode vi\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            terminal.send(keys)
            terminal.settle()
            terminal.send(b'\r')
            self.assertEqual(self.sent(terminal, 1), [message])
            self.leave(terminal)

    def test_in_vi_mode_a_key_that_arrives_with_escape_is_a_command(self):
        self.sends_in_vi_mode(b'word\x1b0ia ', 'a word')

    def test_in_vi_mode_a_deletion_up_to_the_end_joins_no_lines(self):
        self.sends_in_vi_mode(b'one\x1b\rtwo\x1b0Dix', 'x')


class ControlSequences(QueueCase):
    """What terminals send for keys that are bound to nothing: it must not appear in the line."""

    UNBOUND = (b'\x1b[15~', b'\x1b[24~', b'\x1b[15;2~', b'\x1b[1;2P', b'\x1b[1;2D', b'\x1b[5;2~', b'\x1b[P',
               b'\x1b[29~', b'\x1bOP', b'\x1bO2P', b'\x1bOj', b'\x1b[[A', b'\x1b[97;5:1u', b'\x1b[I', b'\x1b[?2026;1$y',
               b'\x1b\x1b[15~', b'\x1b\x1b[A', '\x1b\u00e9'.encode(), '\x1b[\u00e9'.encode(), '\x1bO\u6f22'.encode())

    def test_unbound_function_keys_type_nothing(self):
        self.use_copying_editor()
        for words in (*PAINTERS, ['--plain']):
            terminal = self.ready(*words)
            terminal.send(b'<' + b'|'.join(self.UNBOUND) + b'>')
            self.assertEqual(self.edited(terminal), f'<{"|" * (len(self.UNBOUND) - 1)}>')
            terminal.send(b'\x03')
            terminal.settle()
            self.leave(terminal)

    def test_the_users_bindings_of_function_keys_work(self):
        self.use_copying_editor()
        self.write_inputrc('"\\e[15~": "five"\n"\\e[15;2~": unix-word-rubout\n"\\e[[A": "one"\n"\\eOR": "three"\n')
        for words in PAINTERS:
            terminal = self.ready(*words)
            terminal.send(b'six seven\x1b[15;2~\x1b[15~\x1b[17~ \x1b[[A\x1b[[C \x1bOR\x1bOS')
            self.assertEqual(self.edited(terminal), 'six five one three')
            terminal.send(b'\x03')
            terminal.settle()
            self.leave(terminal)


if __name__ == '__main__':
    main()
