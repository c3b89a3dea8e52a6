#!/usr/bin/env python3
"""
test_chat_screens.py CHAT MAKE_MODEL: screens of the inline painter in tmux that change over time, which
golden screens (test_golden_screens.py) cannot show. Skipped (77) without tmux.
"""
import os
import shutil
import sys

from support.program_case import PROGRAM, main
from support.screen_case import ScreenCase
from support.terminal_screen import Screen


class Screens(ScreenCase):
    def test_the_prompt_shows_the_loading_progress_beside_typed_text(self):
        self.fake(load_until=self.gate())
        screen = self.open(80, 24)
        screen.expect(r'(^|\n)\(loading \d+%\) >>>$')
        screen.send('text')
        screen.expect(r'(^|\n)\(loading \d+%\) >>> text$')
        self.write('gate', '')
        screen.expect(r'loaded in [^\n]*\n>>> text$')
        self.assertNotIn('(loading', screen.text('-S', '-100'))

    def test_the_message_of_the_command_line_looks_like_a_typed_one(self):
        self.fake('fine')
        for words in ([], ['--tui'], ['--plain']):
            screen = self.open(80, 24, *words, '-i', 'one\ntwo')
            screen.expect(r'\n>>> one\n\.\.\. two\n(I2_S.*\n)?fine\n')

    def test_saved_chats_are_listed_for_people(self):
        self.fake('fine')
        folder = self.chats_folder()
        question = b'a question that is longer than its column in the table'
        self.chat('-i', stdin=question + b'\nmore\n/save first\n/save other one\n')
        with open(os.path.join(folder, 'damaged.json'), 'w', encoding='utf-8') as file:
            file.write('{')
        os.utime(os.path.join(folder, 'first.json'), (1700000000, 1700000000))
        time, first = r'20\d\d-\d\d-\d\d \d\d:\d\d  ', r'a question that is longer than its col\.\.\.\n'
        listed = (r'  name       last change       turns  first message\n'
                  rf'  damaged    {time}    -  \(cannot be read\)\n'
                  rf'  first      2023-11-1\d \d\d:\d\d      2  {first}')
        screen = Screen(self.home.name, self.env, [PROGRAM, '--list-sessions'], 80, 24)
        self.addCleanup(screen.close)
        screen.expect(f'^{listed}  other one  {time}    2  {first}left with 0')
        for n_turns, words in ((2, []), (3, ['--tui'])):
            screen = self.open(80, 24, '--session', 'other one', *words)
            screen.expect('(?s)loaded in.*>>>')
            screen.send('/sessions', 'Enter')
            screen.expect(rf'{listed}\* other one  {time}    {n_turns}  {first}')
            screen.send('again', 'Enter')  # this turn is in the journal only
            screen.expect(r'>>> again\nfine\n\[\d+ tok')
            screen.send('/sessions', 'Enter')
            screen.expect(rf'(?s)>>> again\n.*\n\* other one  {time}    {n_turns + 1}  {first}')
            screen.close()

    def test_the_list_of_saved_chats_fits_80_columns(self):
        self.fake('fine')
        names = ('n' * 24, 'm' * 40, 'l' * 60)  # the column of the names has at most 24
        saves = ''.join(f'/save {name}\n' for name in names)
        self.chat('-i', stdin=('a long question ' * 6 + '\n' + saves).encode())
        screen = Screen(self.home.name, self.env, [PROGRAM, '--list-sessions'], 120, 24)
        self.addCleanup(screen.close)
        screen.expect('left with 0')
        rows = {row.split()[0]: row for row in screen.text().split('\n') if row.strip()}
        self.assertEqual([len(rows[name]) for name in names], [79, 79, 60 + 27], rows)
        self.assertRegex(rows['n' * 24], r' 1  a long question a long \.\.\.$')

    def test_the_list_of_saved_chats_reads_neither_a_fifo_nor_a_large_file(self):
        folder = self.chats_folder()
        os.makedirs(folder)
        os.mkfifo(os.path.join(folder, 'fifo.json'))
        os.symlink('/dev/zero', os.path.join(folder, 'zero.json'))
        with open(os.path.join(folder, 'large.json'), 'wb') as file:
            file.truncate(5000000)
        screen = Screen(self.home.name, self.env, [PROGRAM, '--list-sessions'], 80, 24)
        self.addCleanup(screen.close)
        screen.expect(r'(?m)^  fifo   [^\n]{16}      -  \(cannot be read\)\n'
                      r'  large  [^\n]{16}      -  \(large\)\n'
                      r'  zero   [^\n]{16}      -  \(cannot be read\)\n')

    def test_plain_keeps_the_prompt_and_typed_text_above_a_message(self):
        self.fake('fine', load_until=self.gate())
        screen = self.open(80, 24, '--plain')
        screen.send('text')
        screen.expect(r'\n>>> text$')
        screen.send('Left', 'Left')
        self.write('gate', '')
        screen.expect(r'\n>>> text\n[^\n]*loaded in [^\n]*\n>>> text$')
        screen.send('X', 'Enter')
        screen.expect(r'\n>>> teXxt\nfine\n')

    def test_the_status_row_shows_progress_and_disappears(self):
        self.fake('word ', endless=1, token_ms=20, n_ctx=4000)
        screen = self.open(80, 24)
        screen.send('x', 'Enter')
        screen.expect(r'\ngenerating \d+ \| \d+\.\d tok/s \| ctx \d+/4000 \d+% \| Esc stops \|')
        screen.send('ahead', 'Enter', 'more')
        screen.expect(r'\ngenerating [^\n]*\nnext: ahead\n>>> more$')
        screen.send('Escape')
        screen.expect(r'\nstopped\n\[\d+ tok[^\n]*\nnot sent: ahead\nUp recalls it\n>>> more$')
        self.assertNotIn('generating', screen.text('-S', '-100'))
        self.assertNotIn('next:', screen.text('-S', '-100'))

    def test_the_row_counts_to_the_last_token_when_no_more_come(self):
        for words in ([], ['--tui']):
            self.fake(b'some words\x1d', token_ms=30)  # the generator waits at \x1d
            screen = self.open(80, 24, *words)
            screen.send('x', 'Enter')
            screen.expect('generating 10 ')
            screen.send('Escape')
            screen.expect('stopped')

    def test_the_row_counts_a_part_of_a_micro_batch(self):
        """Only the row: the numbers of a stopped prefill are those of whole micro-batches."""
        for words in ([], ['--tui']):
            self.fake('one', 'two', 'six', part_until=self.path('half'))
            screen = self.open(80, 24, *words)
            screen.send('123456789', 'Enter')
            screen.expect(r'\nreading 14/28 50%( \d+ s)? . ctx 14/4096 ')
            screen.send('Escape')
            screen.expect('stopped')
            screen.send('C-u', '/stats', 'Enter')
            screen.expect(r'28 tok: 0 reused, 0 evaluated in 0\.00 s\n')
            self.write('half', '')
            screen.send('123456789', 'Enter')
            screen.expect(r'two\n')
            os.remove(self.path('half'))
            screen.send('123456789', 'Enter')  # the first turn has 30 tokens and the end of the answer
            screen.expect(r'\nreading 14/28 50%( \d+ s)? . ctx 45/4096 ')
            screen.close()

    def test_a_rate_is_shown_from_the_third_token(self):
        for answer, shown in (('ab', r'generating 2 \| ctx'), ('abc', r'generating 3 \| [\d.]+ tok/s \| ctx')):
            for words in ([], ['--tui']):
                self.fake(answer + '\x1d', token_ms=300)
                screen = self.open(80, 24, *words)
                screen.send('x', 'Enter')
                screen.expect(shown)
                screen.send('Escape')
                screen.expect('stopped')

    def test_a_signal_that_ends_the_program_leaves_no_status_row(self):
        self.fake('some words ', endless=1, token_ms=20, n_ctx=4000)
        screen = self.open(200, 24)
        screen.send('x', 'Enter')
        screen.expect(r'\ngenerating \d+ ')
        screen.send('-l', 'ahead ' * 20)  # the message of the shell covers only its beginning
        screen.expect('>>> ahead')
        screen.key('1c')  # the key of SIGQUIT
        screen.expect('left with 131')
        text = screen.text('-S', '-100')
        self.assertNotIn('generating', text)
        self.assertNotIn('ctx', text.split('some words')[-1])
        self.assertNotIn('ahead', text)

    def test_wide_characters_wrap_whole(self):
        self.fake('漢字' * 30)
        screen = self.open(21, 20, '--no-stats')
        screen.send('x', 'Enter')
        screen.expect(r'字\n+>>>')
        lines = [line for line in screen.text().split('\n') if '漢' in line]
        self.assertEqual(lines, ['漢字' * 5] * 6)


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
