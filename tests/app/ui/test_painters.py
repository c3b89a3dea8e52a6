#!/usr/bin/env python3
"""
test_painters.py CHAT MAKE_MODEL: both painters of a terminal: attributes of Markdown, changes of painter within
an answer, and the number of bytes written. Tests that need tmux are skipped without it.
"""
import os
import re
import shutil
import signal
import time
import unittest

from support.idle import children_of, stat_of
from support.program_case import PROGRAM, main
from support.terminal_screen import Screen
from support.terminal_case import TerminalCase

ANSWER = '# Head\n\nSome **bold** and `code`.\n\n- item\n\n```c\nint x; // **\n```\nend'
BOLD, CODE, HEAD = '\x1b[1m', '\x1b[36m', '\x1b[1m\x1b[35m'
WORDS = [f'w{i:03}x' for i in range(120)]
NEEDS_TMUX = unittest.skipUnless(shutil.which('tmux'), 'tmux is not installed')


class PainterCase(TerminalCase):
    def screen(self, columns, rows, *args):
        screen = Screen(self.home.name, self.env, [PROGRAM, self.model, *args], columns, rows)
        self.addCleanup(screen.close)
        screen.expect('>>>')
        return screen

    def looks(self, screen):
        """
        {text: attributes} for each run of cells with equal attributes, without the blanks around it. Blanks
        within a run may have any attributes, because a status row may have been erased there.
        """
        runs, now = [('', '')], []
        for part in re.split(r'(\x1b\[[0-9;]*m|\n)', screen.text('-e')):
            if not part.startswith('\x1b'):
                look, last = ' '.join(now), runs[-1]
                if part == '\n' or not last[0]:
                    runs.append((part.strip(), look))
                elif not part.strip():
                    runs[-1] = (last[0] + part, last[1])
                elif look == last[1]:
                    runs[-1] = (last[0] + part, look)
                else:
                    runs.append((part, look))
                continue
            for code in part[2:-1].split(';'):
                if code in ('', '0'):
                    now = []
                elif code == '39':
                    now = [c for c in now if not c.startswith('3')]
                elif code != '49':
                    now = now + [code]
        return {text.strip(): look for text, look in runs}

    def each_word_once(self, text, words=WORDS):
        found = re.findall(r'w\d{3}x', text)
        self.assertEqual(found, list(words), text)


class Looks(PainterCase):
    @NEEDS_TMUX
    def test_markdown_marks_stay_and_their_text_is_coloured(self):
        for words, wide in (([], 60), (['--tui'], 60), ([], 20), (['--tui'], 20)):
            self.fake(ANSWER, token_ms=1)
            screen = self.screen(wide, 30, '--private', *words)
            screen.send('x', 'Enter')
            screen.expect(r'(?s)end.*\[\d+ tok')
            wrapped = ANSWER if wide == 60 else ANSWER.replace('and `', 'and\n`')
            self.assertIn(wrapped, screen.text('-J'))
            shown = self.looks(screen)
            self.assertEqual([shown[text] for text in ('# Head', '**bold**', '`code`', '-', '```c',
                                                       'int x; // **', '```', 'end')],
                             ['1 35', '1', '36', '1', '2', '36', '2', ''])
            screen.close()

    def test_without_colour_no_attribute_reaches_the_terminal(self):
        self.fake(ANSWER.replace('\n', ' '))
        for variable, words in (('1', []), (None, ['--color', 'never']), (None, ['--plain'])):
            self.env.pop('NO_COLOR', None)
            if variable:
                self.env['NO_COLOR'] = variable
            terminal = self.ready(*words)
            seen = self.ask(terminal, 'x')
            self.assertEqual(re.findall(rb'\x1b\[[1-9][0-9;]*m', seen), [])
            self.assertIn(b'**bold**', seen)  # the status row may be painted after any word

    @NEEDS_TMUX
    def test_history_shows_questions_in_bold(self):
        self.fake('an answer')
        for painter in ([], ['--tui']):
            screen = self.screen(60, 20, '--private', *painter)
            screen.send('-l', 'a question')
            screen.send('Enter')
            screen.expect(r'\[\d+ tok')
            screen.send('-l', '/history')
            screen.send('Enter')
            screen.expect(r'1> a question\nan answer')
            looks = self.looks(screen)
            self.assertIn('1', looks['1> a question'].split())
            self.assertNotIn('1', looks['an answer'].split())

    def test_a_pipe_gets_the_answer_alone(self):
        self.fake(ANSWER)
        self.env['TERM'] = 'xterm-256color'
        for words in ([], ['--color', 'always']):
            self.assertEqual(self.says('-p', 'x', *words), ANSWER.encode() + b'\n')

    def test_attributes_end_when_an_answer_is_stopped(self):
        self.fake('```\ncode\n', endless=1, token_ms=5)
        terminal = self.ready()
        start = len(terminal.seen)
        terminal.send(b'x\r')
        terminal.expect(rb'\x1b\[36mcode', start=start)
        terminal.send(b'\x1b')
        terminal.expect(b'stopped', start=start)
        self.assertRegex(terminal.seen[start:], rb'\x1b\(B\x1b\[m[^m]*\x1b\[2mstopped')

    @NEEDS_TMUX
    def test_thoughts_stay_dim_under_the_status_row(self):
        template = self.write('thinks.jinja', "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}"
                              "{% if add_generation_prompt %}<think>{% endif %}")
        self.fake('one two **three** four</think>done', token_ms=60)
        screen = self.screen(60, 20, '--private', '--template', '@' + template)
        screen.send('x', 'Enter')
        screen.expect(r'(?s)done.*\[\d+ tok')
        [line] = [line for line in screen.text('-e').split('\n') if 'one two' in line]
        words = re.findall(r'\x1b\[2m([^\x1b]+)', line)
        self.assertEqual(''.join(words).replace(' ', ''), 'onetwo**three**four')


    @NEEDS_TMUX
    def test_a_thought_that_reached_its_budget_is_followed_by_the_answer(self):
        template = self.write('thinks.jinja', "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}"
                              "{% if add_generation_prompt %}<think>{% endif %}")
        for words in ([], ['--tui'], ['--plain']):
            self.fake('one two three four</think>done')
            screen = self.screen(100, 20, '--private', '--think-budget', '7', '--template', '@' + template, *words)
            screen.send('x', 'Enter')
            screen.expect(r'(?s)one two\s+done\s+\[\d+ tok, thought 7 tok \(budget reached\)')
            self.assertNotIn('think>', screen.text())
            screen.send('F2')
            screen.send('/stats', 'Enter')
            screen.expect('--think-budget was reached')
            screen.close()


class TypedText(PainterCase):
    def test_unsafe_characters_typed_without_paste_marks_are_not_echoed(self):
        unsafe = '\x9b31m \u202eabc\u2066 \U000e0041'
        for term, words in (('xterm', []), ('xterm', ['--tui']), ('xterm', ['--plain']), ('dumb', [])):
            self.env['TERM'] = term
            terminal = self.ready(*words)
            terminal.send(unsafe + ' typed')
            terminal.expect(rb'typed')
            terminal.send(b'\x15/quit\r')
            self.left_clean(terminal, 0)
            for character in '\x9b\u202e\u2066\U000e0041':
                self.assertNotIn(character.encode(), terminal.seen)


class Changes(PainterCase):
    @NEEDS_TMUX
    def test_the_full_screen_erases_no_row_of_the_ordinary_screen(self):
        """Rows with emoji are erased before they are drawn, but not before the full screen is visible."""
        self.fake('fine \U0001f468\u200d\U0001f469\u200d\U0001f467')
        screen = self.screen(60, 20, '--private', '--no-stats')
        screen.send('family \U0001f468\u200d\U0001f469\u200d\U0001f467', 'Enter')
        screen.expect(r'(?s)fine.*\n>>>$')
        rows = screen.text().rstrip().split('\n')
        screen.change_painter()
        screen.expect(r'\nready')
        screen.change_painter()
        screen.expect(r'(?s)\A(?!.*ready \|).*\n>>>\s*\Z')
        self.assertEqual(screen.text().rstrip().split('\n')[:len(rows) - 1], rows[:-1])

    @NEEDS_TMUX
    def test_changing_painters_within_an_answer_repeats_nothing(self):
        self.fake('# w000x **' + ' '.join(WORDS[1:]) + '**', 'second', token_ms=2)
        screen = self.screen(60, 30, '--private')
        screen.send('go', 'Enter')
        for word in ('w010x', 'w030x', 'w045x', 'w060x'):
            screen.expect(word)
            screen.change_painter()
        screen.expect(r'(?s)w119x.*\[\d+ tok.*>>>$')
        text = screen.text('-J', '-S', '-500')
        self.each_word_once(text)
        self.assertEqual(text.count('>>> go'), 1)
        self.assertNotIn('Esc stops |', text)

    @NEEDS_TMUX
    def test_an_answer_that_ended_in_full_screen_is_complete_inline(self):
        self.fake(' '.join(WORDS), token_ms=2)
        screen = self.screen(60, 30, '--private')
        screen.send('go', 'Enter')
        screen.expect('w010x')
        screen.change_painter()
        screen.expect(r'(?s)w119x.*\[\d+ tok.*\nready')
        screen.change_painter()
        screen.expect(r'(?s)w119x.*\[\d+ tok.*>>>$')
        self.each_word_once(screen.text('-J', '-S', '-500'))

    @NEEDS_TMUX
    def test_a_continued_answer_repeats_nothing(self):
        for words in ([], ['--tui']):
            self.fake(' '.join(WORDS[:20]) + ' ', ' '.join(WORDS[20:]), token_ms=2)
            screen = self.screen(60, 40, '--private', '--no-stats', *words)
            screen.send('go', 'Enter')
            screen.expect(r'(?s)w019x.*>>>$')
            screen.send('/continue', 'Enter')
            screen.expect('w030x')
            screen.change_painter()
            screen.expect('w050x')
            screen.change_painter()
            screen.expect(r'(?s)w119x.*>>>$')
            screen.send('/quit', 'Enter')
            screen.expect('left with 0')
            self.each_word_once(screen.text('-J', '-S', '-500'))
            screen.close()

    def ends_in_bold(self, screen):
        """The row with "**bold** words", after the block of code, must have its look."""
        last = [row for row in screen.text('-e').split('\n') if 'words' in row]
        self.assertRegex(last[0], r'\x1b\[([0-9;]*;)?1m[^\x1b]*bold')

    @NEEDS_TMUX
    def test_a_continued_answer_goes_on_with_its_markdown(self):
        """The first part ends in a block of code. Its end must not begin another block."""
        for words in ([], ['--tui']):
            self.fake('```\nfor i\n', 'in **x**:\n```\nand **bold** words')
            screen = self.screen(60, 20, '--private', '--no-stats', *words)
            screen.send('go', 'Enter')
            screen.expect(r'for i')
            screen.send('/continue', 'Enter')
            screen.expect(r'bold\*\* words')
            rows = screen.text('-e').split('\n')
            code = [row for row in rows if '**x**' in row]
            self.assertEqual(len(code), 1, rows)
            self.ends_in_bold(screen)
            screen.close()
        self.fake('```\nfor i\n', 'in \x1d**x**:\n```\nand **bold** words', hold=self.gate())
        screen = self.screen(60, 20, '--private', '--no-stats')
        screen.send('go', 'Enter')
        screen.expect(r'for i')
        screen.send('/continue', 'Enter')
        screen.expect(r'generating')
        screen.change_painter()  # the other painter continues the answer
        self.write('gate', '')
        screen.expect(r'bold\*\* words')
        self.ends_in_bold(screen)

    @NEEDS_TMUX
    def test_a_command_during_an_answer_keeps_its_markdown(self):
        for words in ([], ['--tui']):
            self.fake('```\nfor i in x:\n    \x1dy()\n```\nand **bold** words', hold=self.gate())
            screen = self.screen(60, 20, '--private', '--no-stats', *words)
            screen.send('go', 'Enter')
            screen.expect(r'for i in x')
            screen.send('/tokens hi', 'Enter')
            screen.expect(r'\d+ +\|h\|')
            self.write('gate', '')
            screen.expect(r'bold\*\* words')
            self.assertRegex(screen.text(), r'(?m)^    y\(\)')
            self.ends_in_bold(screen)
            screen.close()

    @NEEDS_TMUX
    def test_a_process_stopped_from_outside_repeats_nothing(self):
        self.fake(' '.join(WORDS), token_ms=4)
        screen = self.screen(60, 30, '--private')
        [pid] = children_of(screen.shell)
        for expected in (r'>>>$', r'w030x', r'(?s)w119x.*>>>$'):
            screen.expect(expected)
            os.kill(pid, signal.SIGSTOP)
            self.wait_for(lambda: stat_of(pid)[0] == 'T')
            os.kill(pid, signal.SIGCONT)
            if expected == r'>>>$':
                screen.settle()
                screen.send('go', 'Enter')
        screen.settle()
        screen.expect(r'>>>$')
        text = screen.text('-J', '-S', '-500')
        self.each_word_once(text)
        self.assertEqual(text.count('>>>'), 2, text)

    def test_a_signal_while_the_last_snapshot_is_written_is_the_exit_code(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)):
            self.fake('fine', save_us=1000000)  # the whole snapshot would take longer than the limit below
            terminal = self.ready('--session', 'talk', '--snapshot')
            self.ask(terminal, 'x')
            terminal.send(b'/quit\r')
            terminal.expect(b'writing a snapshot')
            begun = time.monotonic()
            terminal.process.send_signal(number)
            self.left_clean(terminal, code)
            self.assertLess(time.monotonic() - begun, 15)
            os.remove(os.path.join(self.home.name, '.local/share/bitnet-chat/sessions/talk.json'))

    def test_a_stop_while_a_snapshot_loads_does_not_discard_it(self):
        words = ('--session', 'talk', '--snapshot')
        self.fake('fine')
        terminal = self.ready(*words)
        self.ask(terminal, 'x')
        terminal.send(b'/quit\r')
        self.left_clean(terminal, 0)
        self.fake('fine', save_us=1000000)
        terminal = self.ready(*words)
        start = len(terminal.seen)
        terminal.send(b'y\r')
        terminal.expect(rb'reading.*Esc stops', start=start)
        start = len(terminal.seen)
        terminal.send(b'\x03')
        terminal.expect(rb'(?s)>>> .*y', start=start)  # the question returns to the editor
        self.assertNotIn(b'is read again', terminal.seen)
        terminal.send(b'\x03/quit\r')
        self.left_clean(terminal, 0)


class Cost(PainterCase):
    PROSE = ('Light from the **sun** is white. On its way through the `air` it meets molecules, and they '
             'turn short waves aside more than long ones.\n\n- blue is *short*\n- red is long\n\n')

    def wire(self, *words):
        """What is written for an answer at reading speed, and its bytes per byte of the answer. The state is written
        at intervals of time, so the bytes count less if the machine is slow and the answer takes longer."""
        token_ms = 13
        self.fake(self.PROSE, token_ms=token_ms)
        terminal = self.open(*words)
        terminal.expect(rb'loaded in')
        terminal.settle()
        begun = time.monotonic()
        seen = self.says_in(terminal, b'x\r')
        slowness = (time.monotonic() - begun) / (len(self.PROSE) * token_ms / 1000)
        seen = re.sub(rb'(?s)\[\d+ tok.*|^.*(?=Light)', b'', seen)
        return seen, len(seen) / len(self.PROSE) / max(1, slowness)

    def test_the_inline_painter_writes_at_most_three_times_the_text(self):
        seen, ratio = self.wire()
        self.assertLess(ratio, 3, seen)
        self.assertGreater(seen.count(b'generating') + seen.count(b'tok/s'), 1)

    def test_the_full_screen_writes_a_bounded_number_of_bytes(self):
        seen, ratio = self.wire('--tui')  # a byte of text and two cursor movements, 25 times a second
        self.assertLess(ratio, 12, seen)

    @NEEDS_TMUX
    def test_the_status_row_leaves_nothing_behind_as_text_scrolls(self):
        self.fake('\n'.join(WORDS) + '\n' + '\u2764\ufe0f ' * 8 + '```\n' + 'long code ' * 20, token_ms=2)
        for rows in (30, 4):
            screen = self.screen(40, rows, '--private')
            screen.send('go', 'Enter')
            screen.expect(r'(?s)code .*\[\d+ tok.*>>>$', args=('-S', '-500'))
            text = screen.text('-J', '-S', '-500')
            self.each_word_once(text)
            self.assertNotIn('generating', text)
            self.assertIn('\n'.join(WORDS), text)
            screen.close()


if __name__ == '__main__':
    main()
