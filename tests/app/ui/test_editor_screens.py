#!/usr/bin/env python3
"""
test_editor_screens.py CHAT MAKE_MODEL: the line editor on screens in tmux: input taller than the screen, other
widths while it is edited, emoji of several characters, queued lines. Skipped (77) without tmux.
"""
import random
import re
import shutil
import sys

from support.program_case import PROGRAM, main
from support.screen_case import ScreenCase
from support.terminal_screen import Screen

FAMILY = '\U0001f468\u200d\U0001f469\u200d\U0001f467'
PAINTERS = ([], ['--tui'])


class EditorCase(ScreenCase):
    opened = (r'loaded\s+in|ready', '>>>')

    def paste(self, screen, text):
        screen.tmux('set-buffer', text)
        screen.tmux('paste-buffer', '-p')


class Tall(EditorCase):
    def test_a_tall_paste_is_recalled_as_a_placeholder(self):
        for words in PAINTERS:
            self.fake('fine')
            screen = self.open(60, 12, *words)
            self.paste(screen, '\n'.join(f'row {i}' for i in range(41)))
            screen.expect(r'>>> \[pasted 1: 41 lines')
            screen.send('Enter')
            screen.expect(r'(?s)fine\n.*>>>(\n|$)')
            screen.send('Up')
            screen.expect(r'>>> \[pasted 1: 41 lines, 276 bytes: row 0 ... row 40\]$')
            screen.send('Enter')
            screen.expect(r'(?s)fine.*fine\n.*>>>$')
            self.assertEqual(screen.text('-S', '-100').count('row 20'), 0)
            screen.send('/history', 'Enter')
            screen.expect(r'row 40\n')
            screen.settle()  # the text has this row twice
            self.assertEqual(screen.text('-S', '-200').count('row 20'), 0 if words else 2)
            screen.close()

    def test_a_large_paste_is_one_text(self):
        """Also with --plain, where each line would be sent, and each key drawn, if the paste came as typed keys."""
        path = self.write('large', 'lorem ipsum dolor sit amet consectetur\n' * 8000)
        for words in (*PAINTERS, ['--plain']):
            screen = self.open(80, 24, *words)
            screen.tmux('load-buffer', path)
            screen.tmux('paste-buffer', '-p')
            screen.expect(r'>>> \[pasted 1: 8000 lines, 312000 bytes: lorem ipsum dolor')
            screen.send('C-u')
            screen.expect('>>>$')
            screen.send('short', 'Enter')
            screen.expect(r'\nHello.*\n(.*\n)*>>>')
            screen.close()

    def test_a_newline_at_the_end_of_a_paste_is_no_line(self):
        self.fake('fine')
        screen = self.open(60, 12)
        for number, (end, n_bytes) in enumerate((('', 47), ('\n', 48)), 1):
            self.paste(screen, '\n'.join(f'row {i}' for i in range(8)) + end)
            screen.expect(rf'\[pasted {number}: 8 lines, {n_bytes} bytes: row 0 ... row 7\]')
            screen.send('C-u')

    def test_a_tall_entry_of_an_earlier_run_is_recalled_as_a_placeholder(self):
        self.fake('fine')
        rows = '\n'.join(f'row {i}' for i in range(41))
        for words in PAINTERS:
            screen = self.open(60, 12, '--session', 'talk', *words)
            screen.close()
        words = [PROGRAM, self.model]
        for painter in PAINTERS:
            screen = Screen(self.home.name, self.env, words + painter, 60, 12)
            self.addCleanup(screen.close)
            screen.expect('>>>')
            if not painter:
                self.paste(screen, rows)
                screen.expect(r'pasted 1: 41 lines')
                screen.send('Enter')
                screen.expect('fine')
                screen.send('/quit', 'Enter')
                screen.expect('left with 0')
                screen.close()
                screen = Screen(self.home.name, self.env, words + painter, 60, 12)
                self.addCleanup(screen.close)
                screen.expect('>>>')
            screen.send('Up', 'Up')
            screen.expect(r'>>> \[earlier \d: 41 lines, 27\d bytes: row 0 ... row 40!?\]$')
            screen.send('C-e', '!', 'Enter')
            screen.expect(r'fine')
            screen.send('/quit', 'Enter')
            screen.expect('left with 0')
            screen.close()

    def test_typed_text_that_is_taller_than_the_screen_is_edited_in_a_part_of_it(self):
        self.fake('fine')
        screen = self.open(60, 12)
        for i in range(30):
            screen.send(f'row{i}', 'M-Enter')
        screen.send('last')
        screen.expect(r'\n\(26 rows above\)\n(\.\.\. row\d+\n){4}\.\.\. last$')
        self.assertEqual(screen.text('-S', '-100').count('row15'), 0)  # nothing was pushed out of the screen
        for i in range(28):
            screen.send('Up')
        screen.expect(r'\n>>> row0\n(\.\.\. row\d\n){4}\(26 rows below\)$')
        screen.send('C-a', 'X')
        screen.expect(r'\n\.\.\. (row2|Xrow2)\n')
        screen.send('Enter')
        screen.expect('fine')
        text = screen.text('-S', '-100')
        self.assertEqual(re.findall(r'row\d+', text), [f'row{i}' for i in range(30)])
        self.assertEqual(text.count('>>>'), 2, text)

    def test_each_row_of_the_screen_shows_what_was_typed(self):
        """Random editing of a text of several rows. After each step, the screen is that of a fresh redraw."""
        rng = random.Random(7)
        screen = self.open(40, 14)
        keys = ['Left', 'Right', 'Up', 'Down', 'Home', 'End', 'BSpace', 'DC', 'M-b', 'M-f', 'M-d', 'C-k', 'C-y', 'C-w',
                'M-Enter', 'M-Enter', 'word ', 'a longer piece of text ', '漢字', FAMILY, 'e\u0301', 'x', 'C-_']
        for _ in range(12):
            for _ in range(12):
                key = rng.choice(keys)
                screen.send(*(['-l', '--', key] if key[-1] in ' 字x\u0301' or key == FAMILY else [key]))
            screen.settle()
            shown, cursor = screen.text(), screen.cursor()
            screen.send('C-l')
            screen.settle()
            rows = screen.text().rstrip('\n').split('\n')  # only the editor is left
            self.assertEqual(shown.rstrip('\n').split('\n')[-len(rows):], rows)
            top = len(shown.rstrip('\n').split('\n')) - len(rows)
            self.assertEqual(cursor, (screen.cursor()[0], screen.cursor()[1] + top))


class Hidden(EditorCase):
    """Marks count the rows of an input that are not shown."""

    WORDS = ' '.join(f'w{i:02}' for i in range(60))

    def test_a_narrower_window_shows_that_rows_are_hidden(self):
        for words in PAINTERS:
            for colour in ('', '1'):
                self.env['NO_COLOR'] = colour
                screen = self.open(80, 20, *words)
                screen.send('-l', self.WORDS)
                screen.expect('w59$')
                self.assertNotIn('rows above', screen.text())
                screen.resize(20, 20)
                screen.expect(r'(^|\n)\(\d+ rows above\)\n([w\d ]+\n)+[w\d ]*w59$')
                is_dim = re.search(r'\x1b\[(0;)?2m(\x1b\[[34]9m)*\(\d+ rows above', screen.text('-e'))
                self.assertEqual(is_dim is None, colour == '1')
                screen.send('C-a')
                screen.expect(r'>>> w00[w\d ]*\n([w\d ]*\n)+\(\d+ rows below\)$')
                screen.resize(80, 20)
                screen.expect('>>> w00[^()]*w59$')
                screen.close()

    def test_typed_text_during_an_answer_shows_that_rows_are_hidden(self):
        self.fake('some words \x1d')
        screen = self.open(40, 20)
        screen.send('go', 'Enter')
        screen.expect(r'generating \d+ ')
        screen.send('-l', self.WORDS)
        screen.expect(r'\n\(4 rows above\)\n([w\d ]*\n){2}[w\d ]*w59$')
        screen.send('C-a')
        screen.expect(r'\n>>> w00[w\d ]*\n([w\d ]*\n){2}\(4 rows below\)$')


class Widths(EditorCase):
    def fill(self, screen):
        """
        Fill the screen: while it is not full, tmux moves rows that it has broken into the scrollback, where no
        program can erase them.
        """
        screen.send('go', 'Enter')
        screen.expect(r'(?s)row\nrow\n.*\[\d+ tok[^\n]*\n>>>$')

    def wait_for_text(self, screen, pattern, found):
        """Wait until the editor is drawn for the new width: nothing is lost, and nothing is there twice."""
        text = ''

        def is_right():
            nonlocal text
            text = screen.text('-S', '-100')
            return re.findall(pattern, text.replace('\n', '')) == found and text.count('>>>') == 2

        try:
            self.wait_for(is_right)
        except AssertionError:
            self.fail(text)

    def test_a_wrapped_line_survives_other_widths(self):
        self.fake('row\n' * 30)
        screen = self.open(60, 20)
        self.fill(screen)
        words = ' '.join(f'w{i:02}' for i in range(40))
        screen.send('-l', words)
        screen.expect('w39$')
        for columns, rows in ((40, 20), (70, 20), (23, 24), (80, 10), (50, 30), (33, 20), (60, 20)):
            screen.resize(columns, rows)
            screen.settle()
            screen.send('-l', '+')
            self.wait_for_text(screen, r'w\d\d', [f'w{i:02}' for i in range(40)])
        screen.send('Enter')
        screen.expect(r'(?s)row\n.*\[\d+ tok[^\n]*\n>>>$')
        text = screen.text('-S', '-100', '-J')
        self.assertEqual(text.count(words + '+++++++'), 1, text)

    def test_several_lines_survive_other_widths_with_the_cursor_above_the_end(self):
        self.fake('row\n' * 40)
        screen = self.open(60, 34)
        self.fill(screen)
        for i in range(5):
            screen.send('-l', f'line {i} ' + 'abc ' * 11)
            screen.send('M-Enter')
        screen.send('-l', 'end')
        screen.send('Up', 'Up')
        for columns in (35, 80, 28, 60):
            screen.resize(columns, 34)
            screen.settle()
            screen.send('x')
            self.wait_for_text(screen, r'lix*nx*ex* (\d)', list('01234'))


class Emoji(EditorCase):
    def test_the_cursor_is_behind_an_emoji_of_several_characters(self):
        for words in PAINTERS:
            self.edit_with_emoji(self.open(60, 12, *words))

    def test_the_cursor_is_where_the_next_character_appears(self):
        """Terminals disagree about the width of these characters, and tmux has its own opinion. The ordinary screen
        writes the row up to the cursor, so its columns are those of the terminal."""
        texts = ('a\u2764\ufe0f', '1\ufe0f\u20e3', FAMILY, '\U0001f44d\U0001f3fd')
        columns = {}
        for words in PAINTERS:
            screen = self.open(60, 12, *words)
            found = columns.setdefault(tuple(words), [])
            for text in texts:
                for keys, shown in ((('-l', text), text), (('-l', '|'), text + '|'), (('Left',), text + '|'),
                                    (('-l', 'x'), text + 'x|'), (('End',), text + 'x|')):
                    screen.send(*keys)
                    screen.expect(re.escape(shown) + '$')
                    screen.settle()
                    found.append((shown, screen.cursor()[0]))
            screen.close()
        self.assertEqual(*columns.values())

    def edit_with_emoji(self, screen):
        screen.send('-l', f'a{FAMILY}b')
        screen.expect(f'>>> a{FAMILY}b$')
        self.at(screen, 8)
        screen.send('Left')
        self.at(screen, 7)
        screen.send('Left')
        self.at(screen, 5)
        screen.send('-l', 'X')
        screen.expect(f'>>> aX{FAMILY}b$')
        self.at(screen, 6)
        screen.send('Right')
        self.at(screen, 8)
        screen.send('BSpace')
        screen.expect('>>> aXb$')
        self.at(screen, 6)
        screen.close()

    def at(self, screen, column):
        self.wait_for(lambda: screen.cursor()[0] == column)


class Queued(EditorCase):
    def test_queued_lines_are_shown_below_the_answer(self):
        for words in PAINTERS:
            self.fake('\n'.join(f'w{i:03}x' for i in range(60)) + '\x1d.', 'two', 'three', 'four',
                      hold=self.gate(), token_ms=3)
            screen = self.open(50, 20, '--no-stats', *words)
            screen.send('go', 'Enter')
            screen.expect('w005x')
            screen.send('one', 'Enter')
            screen.send('a long line ' * 6, 'Enter')
            screen.send('three', 'Enter', '4', 'Enter', 'typed')
            state, typed = r'generating [^\n]*', '>>> typed'
            queue = r'next: one\nnext: (a long line )+[a-z ]*\.\.\.\nand 2 more\n'
            wanted = queue + state + '\n' + typed if words else state + '\n' + queue + typed
            screen.expect('w058x\n(.*\n)*' + wanted + '$')
            screen.resize(40, 16)
            screen.expect(wanted + '$')
            screen.send('C-u', 'Up')
            screen.expect('>>> 4$')
            screen.send('C-u')
            self.write('gate', '')
            screen.expect(r'(?s)four.*\nready[^\n]*\n>>>$' if words else r'(?s)four.*>>>$')
            text = screen.text('-S', '-300', '-J')
            self.assertNotIn('next:', text)
            self.assertNotIn('generating', text)
            if not words:
                self.assertEqual(re.findall(r'w\d{3}x', text), [f'w{i:03}x' for i in range(60)])
                self.assertRegex(text, r'(?s)>>> go\n.*>>> one\n.*>>> (a long line )+\n.*>>> three\n')
            screen.close()

    def test_output_of_a_command_during_an_answer_damages_nothing(self):
        self.fake(' '.join(f'w{i:03}x' for i in range(100)) + '\x1d.', hold=self.gate(), token_ms=2)
        screen = self.open(50, 24, '--no-stats')
        screen.send('go', 'Enter')
        screen.expect('w010x')
        screen.send('/tokens ab', 'Enter')
        screen.expect('2 tokens')
        screen.expect('w098x')
        self.write('gate', '')
        screen.expect('>>>$')
        text = screen.text('-S', '-100')
        self.assertEqual(re.findall(r'w\d{3}x', text), [f'w{i:03}x' for i in range(100)], text)
        self.assertEqual(text.count('>>> /tokens ab'), 1)
        self.assertNotIn('generating', text)


class Refused(EditorCase):
    """A message that was not sent is in the editor again, and the text above it says so."""

    NOTICE = r'not sent; edit the message below, or delete it with Ctrl-C\n+'

    def test_a_refused_paste_is_deleted_with_one_key_and_recalled_with_another(self):
        for words in (*PAINTERS, ['--plain']):
            self.fake('fine', n_ctx=200)
            screen = self.open(70, 24, *words)
            self.paste(screen, 'lorem ipsum ' * 100)
            screen.expect('lorem ipsum')
            screen.send('Enter')
            screen.expect(r'reserved\s+for\s+the(.*\n)+' + self.NOTICE + r'(ready.*\n)?>>> .*lorem ipsum')
            screen.send('C-c')
            screen.expect('>>>$')
            screen.send('My name is Ann', 'Enter')
            screen.expect(r'\nfine\n(.*\n)*>>>$')
            screen.send('Up', 'Up')
            screen.expect(r'>>> .*lorem ipsum(.*\n?)*$')
            screen.close()

    def test_a_message_that_was_refused_after_it_waited_says_so_too(self):
        for words in PAINTERS:
            self.fake('fine', n_ctx=200, load_until=self.gate())
            screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--private', *words], 70, 24)
            self.addCleanup(screen.close)
            screen.expect('>>>')
            self.paste(screen, 'lorem ipsum ' * 100)
            screen.expect('pasted 1')
            screen.send('Enter')
            screen.expect('your message waits')
            self.write('gate', '')
            screen.expect(r'reserved\s+for\s+the(.*\n)+' + self.NOTICE + r'(ready.*\n)?>>> \[pasted 1: [^\n]*$')
            screen.close()


class Changes(EditorCase):
    def test_a_change_of_painter_leaves_no_empty_prompt(self):
        screen = self.open(60, 12)
        screen.send('half')
        screen.expect('>>> half$')
        screen.send('F2')
        screen.expect(r'\nready[^\n]*\n>>> half$')
        screen.send('F2')
        screen.expect(r'loaded in[^\n]*\n>>> half$')


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
