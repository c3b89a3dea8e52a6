#!/usr/bin/env python3
"""
test_layout.py CHAT MAKE_MODEL: the layout of the program's own texts on screens of several widths, in tmux:
rows end between words, columns align, and no row is too long. Skipped (77) without tmux.
"""
import re
import shutil
import sys

from support.program_case import PROGRAM, main
from support.screen_case import ScreenCase
from support.terminal_screen import Screen


class Layout(ScreenCase):
    opened = (r'loaded\s+in', '>>>')

    def say(self, screen, line, until):
        screen.send('-l', line)
        screen.send('Enter')
        screen.expect(until)
        screen.settle()  # the pattern may not be the last text
        return screen.text()

    def test_the_line_of_statistics_fits_one_row(self):
        for columns, missing in ((120, ()), (80, ('kept', 'prompt')), (40, ('kept', 'prompt', 'seed'))):
            for painter in ([], ['--tui']):
                self.fake('an answer', n_ctx=4000)
                screen = self.open(columns, 24, '--seed', '4111403276', '--temp', '1', *painter)
                self.say(screen, 'first', r'\[\d+ tok.*\]')
                row = re.findall(r'(?m)^\[\d+ tok.*$', self.say(screen, 'second', r'(?s)\[.*\].*\[\d+ tok.*\]'))[1]
                self.assertRegex(row, r'^\[\d+ tok, .*ctx \d+/4000.*\]$')
                self.assertLess(len(row), columns)
                for word in ('kept', 'prompt', 'seed'):
                    self.assertEqual(word in row, word not in missing, row)

    def test_output_of_a_command_wraps_between_words(self):
        said = self.chat('-i', stdin=b'/help find\n').stderr.decode()
        words = said.split('\n', 1)[1].split()
        for painter in ([], ['--tui']):
            screen = self.open(44, 24, *painter)
            text = self.say(screen, '/help find', r'capitals\s+too')
            rows = text[text.index('/find colou'):re.search(r'\stoo\.', text).end()].split('\n')
            self.assertGreater(len(rows), 5)
            self.assertEqual([word for row in rows for word in row.split()], words[words.index('/find'):])

    def test_wrapped_rows_of_a_table_begin_in_the_last_column(self):
        for painter in ([], ['--tui']):
            screen = self.open(60, 50, *painter)
            for line, until, row in (
                    ('/set', r'fixed at\s+start', r'\noverflow-to +60 +default +a whole number from 1\n {37}to 100\n'),
                    ('/help', 'lists the keys', r'\n/file \[PATH .*  attach text files to the next\n {30}message\n'),
                    ('/info', 'sampling', r'\nsampling    .*\n {12}\S')):
                self.assertRegex(self.say(screen, line, until), row)

    def test_a_narrow_table_has_room_for_words(self):
        for painter in ([], ['--tui']):
            screen = self.open(20, 12, *painter)
            self.assertRegex(self.say(screen, '/help', r'lists the\s+keys'),
                             r'\n/ui \[inline\|full\]\n  choose the\n  ordinary or the\n  whole screen\n/quit\n')

    def test_wrapped_rows_of_a_narrow_table_do_not_begin_between_two_columns(self):
        for painter in ([], ['--tui']):
            screen = self.open(40, 40, *painter)
            self.assertRegex(self.say(screen, '/set', r'fixed at\s+start'),
                             r'\nmax-tokens +0 +default +a\n  whole number of at least 0\n')

    def one_answer(self, columns, *args, until='left with 0'):
        """The rows of the screen after a program that does not stay, without the row of its exit status."""
        screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--private', *args], columns, 24)
        self.addCleanup(screen.close)
        screen.expect(until)
        return screen.text()[:screen.text().index('left with')].split('\n')[:-1]

    def test_one_answer_wraps_between_words(self):
        prose, code = ' '.join(f'word{i}' for i in range(20)), 'code ' * 10 + 'end'
        self.fake(f'{prose}\n\n```\n{code}\n```\nlast words')
        for stream in ([], ['--no-stream']):
            rows = self.one_answer(40, *stream, 'x')
            begun = rows.index('')
            self.assertEqual(' '.join(rows[:begun]), prose)
            self.assertGreater(begun, 2)
            self.assertEqual(rows[begun + 1:], ['```', code[:40].rstrip(), code[40:], '```', 'last words'])
            self.assertEqual(self.chat(*stream, 'x').stdout.decode().split('\n')[0], prose)
        rows = self.one_answer(40, '--no-wrap', 'x')
        self.assertEqual(''.join(rows[:4])[:len(prose)], prose)

    def test_a_thought_at_a_terminal_wraps_between_words(self):
        thought = ' '.join(f'thought{i}' for i in range(20))
        template = "{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}a: "
        self.fake(f'<think>{thought}</think>short')
        rows = self.one_answer(40, '--template', '@' + self.write('thinks.jinja', template), 'x')
        self.assertEqual((' '.join(rows[:-1]).strip(), rows[-1]), (thought, 'short'))
        self.assertGreater(len(rows), 5)

    def test_errors_and_warnings_wrap_between_words(self):
        name = 'a name with several short words ' * 4 + '.gguf'
        rows = self.one_answer(40, '--threads', '1', '-m', name, 'x', until='left with 3')
        self.assertEqual(' '.join(rows), self.chat('-m', name, 'x').stderr.decode().rstrip('\n'))
        self.assertGreater(len(rows), 3)
        self.fake('x' * 300)  # the warning of an answer with one character
        rows = self.one_answer(40, 'x')
        self.assertRegex(' '.join(rows), 'bitnet-chat: warning: .*another seed')
        self.assertEqual([row for row in rows[8:] if len(row) > 39], [])

    def test_the_question_for_a_copy_wraps_between_words(self):
        self.fake('x')
        name = 'a-name-of-twenty-let'
        first = Screen(self.home.name, self.env, [PROGRAM, self.model, '--session', name], 80, 24)
        self.addCleanup(first.close)
        first.expect('>>>')
        second = Screen(self.home.name, self.env, [PROGRAM, self.model, '--session', name], 30, 24)
        self.addCleanup(second.close)
        second.expect(r'\[Y/n\]')
        self.assertIn('\nContinue on a copy,\n', second.text())

    def test_help_fits_80_columns(self):
        said = self.chat('-i', '--private', stdin=b'/help\n/help keys\n').stderr.decode()
        self.assertEqual([row for row in said.split('\n') if len(row) > 79], [])

    def test_control_home_and_end_go_to_the_beginning_and_the_end(self):
        screen = self.open(80, 24, '--tui')
        self.say(screen, '/help', 'lists the keys')
        self.assertNotIn('loaded in', screen.text())
        screen.send('C-Home')
        screen.expect('(?s)loaded in.*more below')
        screen.send('C-End')
        screen.expect('(?s)^(?!.*loaded in).*lists the keys')
        screen.settle()
        self.assertNotIn('more below', screen.text())

    def test_dumped_text_is_not_wrapped(self):
        """Text of /dump can be copied unchanged, because the terminal wraps it and the program does not."""
        self.fake('word ' * 12 + 'end')
        screen = self.open(40, 24)
        self.say(screen, 'x', r'\[\d+ tok')
        self.say(screen, '/dump', r'(?s)/dump.*end')
        text = screen.text('-J')
        self.assertIn('word ' * 12 + 'end', text[text.index('/dump'):])

    def test_probs_are_printed_in_columns(self):
        self.fake('ab cd')
        for columns, painter in ((80, []), (80, ['--tui']), (40, [])):
            screen = self.open(columns, 24, *painter)
            self.say(screen, '/probs 3', 'likeliest')
            text = self.say(screen, 'x', r'\[\d+ tok')
            rows = re.findall(r'(?m)^ *\d+% ".*$', text)
            self.assertGreater(len(rows), 4)
            where = {tuple(m.start() for m in re.finditer('%', row)) for row in rows}
            if columns == 80:
                self.assertEqual(len(where), 1, text)
                self.assertEqual(len(where.pop()), 4, text)
            self.assertEqual([row for row in rows if len(row) > columns - 1], [])

    def test_up_and_down_do_not_split_wide_characters(self):
        for painter in ([], ['--tui']):
            screen = self.open(60, 20, *painter)
            screen.send('-l', 'abc')
            screen.send('M-Enter')
            screen.send('-l', '漢字漢字')
            screen.send('M-Enter')
            screen.send('-l', 'xy')
            screen.send('Up')
            screen.send('-l', '|')
            screen.expect(r'(?m)^\.\.\. 漢\|字漢字$')
            screen.send('Up')
            screen.send('-l', '|')
            screen.expect(r'>>> abc\|')
            screen.send('Down', 'Down')
            screen.send('-l', '|')
            screen.expect(r'(?m)^\.\.\. xy\|$')

    def test_a_message_sent_while_loading_shows_no_progress(self):
        self.fake('fine', load_until=self.gate())
        screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--private'], 80, 24)
        self.addCleanup(screen.close)
        screen.expect(r'\(loading \d+%\) >>>')
        screen.send('-l', 'hello')
        screen.send('Enter')
        screen.expect('(?m)^>>> hello$')
        self.write('gate', '')
        screen.expect(r'(?s)fine.*\[\d+ tok')
        self.assertNotIn('(loading', screen.text())

    def test_control_d_leaves_its_row_to_the_shell(self):
        screen = Screen(self.home.name, self.env, ['sh', '-c', '"$@"; echo left', 'sh', PROGRAM, self.model,
                                                   '--private'], 80, 24)
        self.addCleanup(screen.close)
        screen.expect('loaded in(?s:.*)>>>')
        screen.send('C-d')
        screen.expect('(?m)^left$')

    def test_a_refused_command_leaves_an_empty_line(self):
        """Only an unknown command returns to the editor, and only if nothing was typed after it."""
        screen = self.open(80, 24)
        for line, said in (('/set temp abc', 'unchanged'), ('/undo x', 'expected a whole'), ('/load no', 'no')):
            self.say(screen, line, f'(?s){line}.*{said}.*>>>$')
        self.say(screen, '/nope', r'(?s)as\s+text.*>>> /nope$')
        screen.send('C-u')
        screen.key((b'/nope\r/help find\r').hex())
        screen.expect(r'(?s)unknown command /nope.*>>> /help find.*capitals too')
        screen.expect('>>>$')

    def test_a_long_paste_shows_its_ends(self):
        screen = self.open(80, 24)
        screen.tmux('set-buffer', 'def f(x):\n' + '    pass\n' * 9 + '    return a_name_that_is_too_long\n\n')
        screen.tmux('paste-buffer', '-p')
        screen.expect(r'\[pasted 1: 12 lines, \d+ bytes: def f\(x\): \.\.\. return a_name_tha\.\.\.\]')

    def test_text_typed_during_an_answer_is_shown(self):
        self.fake('word word\x1d', hold=self.gate())
        screen = self.open(100, 24)
        self.say(screen, 'x', '(?s)word\\ngenerating')
        screen.send('-l', 'next qestion')
        screen.expect(r'generating[^\n]*\n>>> next qestion$')
        screen.send('BSpace', 'BSpace')
        screen.send('-l', 'XY')
        screen.expect(r'\n>>> next qestiXY$')
        screen.tmux('set-buffer', ' and\nsome\nmore\nlong\ntext')
        screen.tmux('paste-buffer', '-p')
        screen.expect(r'generating[^\n]*\n\(2 rows above\)\n\.\.\. more\n\.\.\. long\n\.\.\. text$')
        self.write('gate', '')
        screen.expect(r'\]\n>>> next qestiXY and\n\.\.\. some\n\.\.\. more\n\.\.\. long\n\.\.\. text$')

    def test_a_narrow_status_row_drops_whole_items(self):
        self.fake('line\n' * 60)
        screen = self.open(80, 12, '--tui')
        self.say(screen, 'x', r'\[\d+ tok')
        screen.send('PPage')
        screen.expect(r'(?m)^more below \| ready \| ctx \d+/4096 \d+% \|')
        row = re.search('(?m)^more below.*$', screen.text()).group().rstrip()
        self.assertIn(row.split(' | ')[-1], ('synthetic-tiny', 'fake device', 'unsaved'))
        screen.resize(48, 12)
        screen.expect(r'(?m)^more below \| ready \| ctx \d+/4096 \d+%\s*$')

    def test_continue_shows_the_last_message(self):
        self.fake('fine')
        self.assertEqual(self.chat('-p', 'the first question', '--session', 'trip').returncode, 0)
        screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--session', 'trip'], 80, 24)
        self.addCleanup(screen.close)
        screen.expect('continuing a chat of 1 turn \\(/history shows them\\), the last: the first question')

    def test_a_missing_file_of_a_message_is_a_warning(self):
        path = self.write('notes.txt', 'the moon')
        self.fake('fine', 'fine', 'fine')
        done = self.chat('-i', '--private', stdin=f'what is @{path}?\nsee @{path}x\nask @bob.\n'.encode())
        self.assertRegex(done.stderr.decode(), rf'^bitnet-chat: 1 file attached; the message has \d+ bytes\n'
                         rf'bitnet-chat: warning: @{path}x is not a file; it is sent as text\n$')

    def test_a_missing_session_is_named_by_its_name(self):
        done = self.chat('-i', '--private', stdin=b'/load nope\n')
        self.assertEqual(done.stderr, b"bitnet-chat: there is no saved chat 'nope'; /sessions lists them\n")


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
