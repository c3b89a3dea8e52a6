#!/usr/bin/env python3
"""
test_full_screens.py CHAT MAKE_MODEL: screens of the full-screen painter in tmux that change over time, which
golden screens (test_golden_screens.py) cannot show. Skipped (77) without tmux.
"""
import re
import shutil
import sys
import time
from collections import Counter

from support.program_case import PROGRAM, main
from support.screen_case import ScreenCase
from support.terminal_screen import Screen

WORDS = [f'w{i:03}x' for i in range(200)]


class FullScreens(ScreenCase):
    def open(self, columns, rows, *args):
        return super().open(columns, rows, '--tui', *args)

    def marked(self, screen):
        """The rows of the transcript with text in reverse video, which is in brackets."""
        rows = [r for r in screen.text('-e').split('\n') if re.search(r'\x1b\[(\d+;)*7m', r) and '| ready' not in r]
        rows = [re.sub(r'\x1b\[(?:\d+;)*7m([^\x1b]*)', r'[\1]', row) for row in rows]
        return [re.sub(r'\x1b\[[0-9;]*m', '', row).strip() for row in rows]

    def test_find_goes_from_match_to_match(self):
        self.fake('first needle\n' + 'hay\n' * 30 + 'second Needle', 'nothing')
        screen = self.open(60, 12, '--no-stats')
        screen.expect('loaded')
        screen.send('a needle?', 'Enter')
        screen.expect('second Needle')
        screen.send('next', 'Enter')
        screen.expect(r'(?s)nothing\n.*ready')
        screen.send('/find needle', 'Enter')
        screen.expect('match 1 of 3, n N Esc')
        self.assertEqual(self.marked(screen), ['>>> a [needle]?'])
        for key, said, row in (('n', 'match 2 of 3', 'first [needle]'), ('n', 'match 3 of 3', 'second [Needle]'),
                               ('n', 'match 1 of 3', '>>> a [needle]?'), ('N', 'match 3 of 3', 'second [Needle]')):
            screen.send(key)
            screen.expect(said)
            self.assertEqual(self.marked(screen), [row])
        screen.send('Escape')
        screen.expect(r'(?m)^(more below \| )?ready')
        self.assertEqual(screen.text('-e').count('7m'), 1)  # the status row
        screen.send('nN')
        screen.expect('>>> nN')
        screen.send('C-u')
        screen.send('/find nowhere', 'Enter')
        screen.expect('nothing matches')
        screen.send('/find hay', 'Enter')
        screen.expect('match 1 of 30')
        screen.send('xn')
        screen.expect('>>> xn')
        screen.send('C-u')
        screen.send('/find hay', 'Enter')
        screen.expect('match 1 of 30')
        screen.send('no thanks')  # the n moves to a match, and is also the first letter
        screen.expect('>>> no thanks')
        screen.send('C-u')
        screen.send('/find hay', 'Enter')
        screen.expect('match 1 of 30')
        screen.send('Up')  # a key that the terminal sends as Esc and other bytes
        screen.expect(r'>>> /find hay$')
        self.assertIn('ready', screen.text())

    def test_a_new_search_can_follow_a_key_of_the_search(self):
        self.fake('first part\nrest', 'nothing')
        screen = self.open(60, 12, '--no-stats')
        screen.expect('loaded')
        screen.send('go', 'Enter')
        screen.expect(r'(?s)rest\n.*ready')
        screen.send('/find part', 'Enter')
        screen.expect('match 1 of 1')
        screen.send('n')
        screen.send('/find rest', 'Enter')
        screen.expect('match 1 of 1')
        self.wait_for(lambda: self.marked(screen) == ['[rest]'])

    def test_find_goes_to_each_match_of_a_long_line(self):
        words = ' '.join(WORDS)  # 1200 characters, which fill 20 rows of 60 columns
        self.fake('- ' + words)
        screen = self.open(60, 12, '--no-stats')
        screen.expect('loaded')
        screen.send('go', 'Enter')
        screen.expect(r'(?s)w199x\n.*ready')
        screen.send('/find w(003|150|151|199)x', 'Enter')
        for number, word in enumerate(('w003x', 'w150x', 'w151x', 'w199x'), 1):
            screen.expect(f'match {number} of 4')
            rows = self.marked(screen)
            self.assertEqual((len(rows), re.findall(r'\[(.*?)\]', rows[0])), (1, [word]))
            screen.send('n')
        screen.expect('match 1 of 4')
        screen.send('Escape')
        screen.expect(r'(?m)^(more below \| )?ready')
        screen.send('/find w003x.*w030x', 'Enter')  # a match of several rows
        screen.expect('match 1 of 1')
        rows = self.marked(screen)
        self.assertEqual(' '.join(re.findall(r'\[(.*?)\]', ' '.join(rows))), ' '.join(WORDS[3:31]))

    def test_a_match_without_characters_is_marked(self):
        self.fake('one\n\nb\u00e9')
        screen = self.open(60, 12, '--no-stats')
        screen.expect('loaded')
        screen.send('go', 'Enter')
        screen.expect(r'(?s)b\u00e9\n.*ready')
        for pattern, row in (('(?<=g)', '>>> g[o]'), ('(?<=go)', '>>> g[o]'), ('^$', '[]'), ('(?<=b)', 'b[\u00e9]'),
                             ('\u00e9\\K', 'b[\u00e9]')):
            screen.send(f'/find {pattern}', 'Enter')
            screen.expect('match 1 of')
            self.wait_for(lambda row=row: self.marked(screen) == [row])
            screen.send('Escape')
            screen.expect(r'(?m)^(more below \| )?ready')

    def test_find_shows_pasted_text_that_matches(self):
        self.fake('an answer')
        screen = self.open(60, 12, '--no-stats')
        screen.expect('loaded')
        pasted = '\n'.join(f'line {i} of the paste' for i in range(40))
        screen.key((f'see \x1b[200~{pasted}\x1b[201~ here\r').encode().hex())
        screen.expect(r'(?s)>>> see \[pasted 1: .*an answer')
        screen.send('/find nowhere', 'Enter')
        screen.expect(r'(?s)\[pasted 1: .*nothing matches')
        screen.send('/find line 3\\d of', 'Enter')
        screen.expect('match 1 of 10')
        self.assertEqual(self.marked(screen), ['... [line 30 of] the paste'])
        screen.send('N')
        screen.expect('match 10 of 10')
        self.assertEqual(self.marked(screen), ['... [line 39 of] the paste here'])
        screen.send('Escape')
        screen.send('C-Home')
        screen.expect(r'>>> see line 0 of the paste\n\.\.\. line 1 of')
        screen.send('C-End')
        screen.expect(r'(?s)paste here\nan answer.*>>> /find line')

    def test_below_20_by_5_only_the_input_is_shown(self):
        self.fake('word ' * 20)
        screen = self.open(19, 5)
        screen.send('x', 'Enter')
        screen.settle()
        screen.send('typed')
        screen.expect(r'^\n\n\n\n>>> typed$')
        screen.resize(40, 4)
        screen.expect(r'^\n\n\n>>> typed$')
        screen.resize(40, 10)
        screen.expect(r'word word')

    def test_the_view_stays_while_text_comes(self):
        lines = [f'line{i:03}\n' for i in range(100)]
        self.fake(' '.join(lines[:40]) + '\x1d' + ' '.join(lines[40:]), hold=self.gate())
        screen = self.open(60, 12)
        screen.send('go', 'Enter')
        screen.expect('line039')
        screen.send('PageUp')
        screen.expect(r'\nmore below \| generating')
        first = screen.text().split('\n')[0]
        self.write('gate', '')
        screen.expect('more below . ready')
        self.assertEqual(screen.text().split('\n')[0], first)
        screen.resize(50, 14)
        screen.settle()
        self.assertEqual(screen.text().split('\n')[0], first)
        screen.key('1b5b313b3548')  # Ctrl-Home
        screen.expect('^bitnet-chat')
        screen.send('PageDown')
        screen.expect('line009')
        screen.key('1b5b313b3546')  # Ctrl-End
        screen.expect(r'(?s)line099.*\[\d+ tok.*\nready')

    def test_the_input_grows_to_eight_rows_and_shrinks(self):
        screen = self.open(60, 20)
        for i in range(12):
            screen.send(f'row{i}', 'M-Enter')
        screen.send('last')
        screen.expect(r'\nready[^\n]*\n\(6 rows above\)\n(\.\.\. row\d+\n){6}\.\.\. last$')
        screen.resize(60, 6)
        screen.expect(r'\nready[^\n]*\n\(10 rows above\)\n(\.\.\. row\d+\n){2}\.\.\. last$')
        screen.resize(60, 20)
        screen.send('C-c')
        screen.expect(r'\nready[^\n]*\n>>>$')

    def test_completions_are_shown_above_the_status_row(self):
        screen = self.open(60, 12)
        screen.send('/se', 'Tab', 'Tab')
        screen.expect(r'\n/sessions +/set\nready[^\n]*\n>>> /se$')
        screen.send('t')
        screen.expect(r'\n\nready[^\n]*\n>>> /set$')

    def test_entered_lines_wait_and_escape_stops_during_an_answer(self):
        self.fake('word ', endless=1, token_ms=20, n_ctx=4000)
        screen = self.open(80, 12)
        screen.send('x', 'Enter')
        screen.expect(r'\ngenerating \d+ \| \d+\.\d tok/s \| ctx \d+/4000 \d+% \| Esc stops \|')
        screen.send('ahead', 'Enter')
        screen.expect(r'\nnext: ahead\ngenerating')
        screen.send('Escape')
        screen.expect(r'(?s)\nstopped\n\[\d+ tok.*\nready.*\n>>> ahead$')
        self.assertNotIn('next:', screen.text())

    def test_wide_and_combining_characters(self):
        self.fake('漢字' * 30 + ' e\u0301te\u0301')
        screen = self.open(21, 20, '--no-stats')
        screen.send('漢e\u0301字', 'Left', 'x')
        screen.expect('>>> 漢e\u0301x字$')
        self.assertEqual(screen.cursor(), (4 + 2 + 1 + 1, 19))
        screen.send('Enter')
        screen.expect('e\u0301te\u0301')
        lines = [line for line in screen.text().split('\n') if '漢字漢' in line]
        self.assertEqual(lines, ['漢字' * 5] * 6)

    def test_search_shows_its_own_prompt(self):
        self.fake('fine')
        screen = self.open(60, 12)
        screen.send('some words', 'Enter')
        screen.expect('fine')
        screen.send('C-r', 'ord')
        screen.expect(r"\n\(reverse-i-search\)`ord': some words$")
        screen.send('C-c')
        screen.expect(r'\n>>>$')

    def test_resizing_loses_and_repeats_nothing(self):
        self.fake(' '.join(WORDS), token_ms=2)
        screen = self.open(80, 24)
        screen.send('go', 'Enter')
        for columns, rows in ((60, 20), (100, 24), (40, 10), (77, 3), (120, 30), (12, 8), (80, 50)):
            time.sleep(0.3)
            screen.resize(columns, rows)
        screen.expect(r'\[\d+ tok')
        screen.settle()  # the answer may have ended before the last change of the size
        self.each_word_once(screen.text())
        screen.send('/quit', 'Enter')
        screen.expect('left with 0')
        text = screen.text('-J', '-S', '-500')
        self.each_word_once(text)
        self.assertNotIn('generating', text)

    def each_word_once(self, text):
        found = Counter(re.findall(r'w\d{3}x', text))
        self.assertEqual([w for w in WORDS if found[w] != 1], [], text)

    def test_emoji_of_several_characters_leave_no_old_text(self):
        """ncurses counts more columns for them than the terminal shows."""
        family = '\U0001f468\u200d\U0001f469\u200d\U0001f467'
        self.fake('\n'.join(20 * ['x' * 58]), 'fine')
        screen = self.open(60, 14, '--no-stats')
        screen.send('go', 'Enter')
        screen.expect(r'(?s)x\n.*ready')
        screen.send('family: ' + 25 * family)
        screen.expect('family')
        screen.settle()
        rows = [row for row in screen.text().split('\n') if family[0] in row]
        self.assertTrue(rows)
        self.assertEqual([row for row in rows if 'x' in row or 'ready' in row], [])

    def test_f2_changes_painters_and_keeps_chat_and_line(self):
        self.fake(' '.join(WORDS), 'again', token_ms=2)
        screen = self.open(80, 30)
        screen.send('go', 'Enter')
        screen.expect('w050x')
        screen.change_painter()
        screen.expect(r'(?s)w199x.*\n\[\d+ tok.*\n>>>$')
        self.each_word_once(screen.text('-J', '-S', '-500'))
        self.assertNotIn('ready |', screen.text())
        screen.send('half a line', 'F2')
        screen.expect(r'(?s)>>> go\n.*w199x.*\nready[^\n]*\n>>> half a line$')
        screen.send('C-u', '/ui inline', 'Enter')
        screen.expect(r'>>> /ui inline\n>>>$')
        screen.send('/ui', 'Enter')
        screen.expect(r'\nui = inline')
        screen.send('/ui full', 'Enter')
        screen.expect(r'\nready \|')
        screen.send('more', 'Enter')
        screen.expect(r'(?s)\nagain\n.*\nready')

    def test_f2_shows_what_was_typed_and_only_visible_thoughts(self):
        notes = self.write('notes.txt', 'the text of the file')
        template = '@' + self.write('thinks.jinja', '{% for m in messages %}{{ m.content }}{% endfor %}'
                                    '{% if add_generation_prompt %}</think>{% endif %}')
        for words, shown in (((), True), (('--no-thoughts',), False)):
            self.fake('<think>my plan</think>The answer.')
            screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--private', '--no-stats', '--template',
                                                       template, *words], 60, 16)
            self.addCleanup(screen.close)
            screen.expect('loaded')
            screen.send(f'what is in @{notes}', 'Enter')
            screen.expect('The answer')
            screen.change_painter()
            screen.expect(r'(?s)The answer.*ready')
            text = screen.text()
            self.assertNotIn('the text of the file', text)
            self.assertIn('what is in @', text)
            self.assertNotIn('think>', text)
            self.assertEqual('my plan' in text, shown, text)

    def test_the_status_row_changes_colour_as_the_context_fills(self):
        self.fake('x' * 20, n_ctx=100)
        screen = self.open(80, 12, '--no-stats')
        for message, percent, looks in (('a' * 10, 49, ['7']), ('b' * 11, 99, ['1', '4', '7'])):
            screen.send(message, 'Enter')
            screen.expect(rf'ready . ctx {percent}/100')
            self.assertEqual(self.row_looks(screen), looks)
        screen.send('/undo', 'Enter')
        screen.expect(r'ready . ctx [0-7]\d/100')
        self.assertEqual(self.row_looks(screen), ['7'])
        screen.send('b', 'Enter')
        screen.expect(r'ready . ctx 89/100')
        self.assertEqual(self.row_looks(screen), ['1', '7'])

    def row_looks(self, screen):
        [row] = [r for r in screen.text('-e').split('\n') if '| ctx' in r]
        return sorted(code for codes in re.findall(r'\x1b\[([\d;]*)m', row[:row.index('ready')])
                      for code in codes.split(';') if code not in ('', '0'))

    def test_standard_error_of_a_library_becomes_a_notice(self):
        self.fake('an answer', noise=1)
        screen = self.open(60, 14)
        screen.send('some', 'Enter')
        screen.expect(r'(?s)\nfrom a library\n.*\nready')
        self.assertIn('\nan answer\n', screen.text())

    def test_the_exit_transcript_can_be_left_out(self):
        self.fake('an answer')
        screen = self.open(60, 12, '--no-exit-transcript')
        screen.send('x', 'Enter')
        screen.expect('an answer')
        screen.send('/quit', 'Enter')
        screen.expect('left with 0')
        self.assertNotIn('an answer', screen.text('-S', '-100'))

    def test_the_exit_transcript_is_capped(self):
        self.fake('row\n' * 2500, n_ctx=100000)
        screen = self.open(60, 12)
        screen.send('x', 'Enter')
        screen.expect(r'\[\d+ tok')
        screen.send('/quit', 'Enter')
        screen.expect('left with 0')
        text = screen.text('-S', '-3000')
        self.assertRegex(text, r'^\(\d+ earlier rows left out\)\n')
        self.assertEqual(text[:text.index('left with')].count('\n'), 2001)


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
