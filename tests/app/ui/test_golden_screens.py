#!/usr/bin/env python3
"""
test_golden_screens.py CHAT MAKE_MODEL PAINTER [record]: screens of a short chat are equal to the files in
screens/, in tmux, on terminals of four sizes. Times and rates differ between runs and are masked.

`record` writes the files again (meson compile -C build record-screens). Review the difference before you
commit it. Skipped (77) without tmux.
"""
import os
import re
import shutil
import sys
import time

PAINTER = sys.argv[3]
RECORD = sys.argv[4:5] == ['record']
del sys.argv[3:5]

from support.chat_case import ChatCase  # noqa: E402  (it reads the command line)
from support.program_case import PROGRAM, main  # noqa: E402
from support.terminal_screen import Screen  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'screens')
SECONDS = 60
CODE = ('Wide 漢字 and cafe\u0301 in a line that is longer than forty columns are, in *Markdown*:\n\n'
        '```c\nint main(void) { return 0; }\n```\n\n- **one**\n- `two`')
HELD = 'It goes on until\x1d'  # the generator waits there until it is stopped

# title, keys, and for recording a pattern that is on the screen when the scene is complete
SCENES = (
    ('a prompt after the banner', (), r'>>>$'),
    ('an answer with wide and combining characters and code', ('say it', 'Enter'), r'two.*\n(.*\n)*>>>$'),
    ('an unknown command, whose line stays', ('/nope', 'Enter'), r'(?s)as\s+text.*>>> /nope$'),
    ('an answer that runs', ('C-u', 'go on', 'Enter'), r'(?s)goes on.*generating'),
    ('a stopped answer', ('Escape',), r'(?s)\nstopped\n.*>>>$'),
    ('lines that are typed', ('one', 'M-Enter', 'two 漢字', 'M-Enter', 'three'), r'three$'),
    ('another size', 'resize', r'three$'),
)


def masked(text):
    text = re.sub(r'\d+\.\d+ s\b', 'N s', text)
    text = re.sub(r'\d+\.\d+ tok/s', 'N tok/s', text)
    text = re.sub(r'(?m)(generating).*', r'\1 ...', text)  # test_chat_screens.py checks its numbers
    text = re.sub(r'bitnet-chat \d+\.\d+\.\d+', 'bitnet-chat N', text)
    text = re.sub(r'\d+\.\d kB', 'N kB', text)
    return '\n'.join(line.rstrip() for line in text.rstrip('\n').split('\n'))


LOOKS = {'1': 'bold', '2': 'dim', '3': 'italic', '4': 'underline', '7': 'reverse'}
COLOURS = ('black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white')


def named_looks(text):
    """Text of tmux capture-pane -e with attributes as words: {bold red}text{}."""
    out, on, said = [], [], []
    for piece in re.split(r'(\x1b\[[\d;]*m|\x1b[()]\w|[\x0e\x0f])', text):
        codes = re.fullmatch(r'\x1b\[([\d;]*)m', piece)
        if codes:
            for code in (codes.group(1) or '0').split(';'):
                if code in ('', '0'):
                    on = []
                elif code in LOOKS:
                    on = on + [LOOKS[code]]
                elif code[:-1] in ('3', '9') and code[-1] < '8':
                    on = [c for c in on if c not in COLOURS] + [COLOURS[int(code[-1])]]
                elif code == '39':
                    on = [c for c in on if c not in COLOURS]
        elif piece and not re.fullmatch(r'\x1b[()]\w|[\x0e\x0f]', piece):
            if on != said:
                out.append('{' + ' '.join(on) + '}')
                said = on
            out.append(piece)
    return ''.join(out)


class Golden(ChatCase):
    def open(self, columns, rows, *args):
        self.fake(CODE, HELD, token_ms=1)
        words = [PROGRAM, self.model, '--private', '--no-stats', '--' + PAINTER, *args]
        screen = Screen(self.home.name, self.env, words, columns, rows)
        self.addCleanup(screen.close)
        return screen

    def settled(self, screen, pattern, look):
        """Wait until the pattern is on the screen and the screen no longer changes. Returns its text."""
        end, last = time.monotonic() + SECONDS, None
        while time.monotonic() < end:
            text = look(screen)
            if text == last and re.search(pattern, re.sub(r'\{[a-z ]*\}', '', text)):
                return text
            last = text
            time.sleep(0.5)
        raise AssertionError(f'{pattern!r} is not on the screen:\n{last}')

    def becomes(self, screen, wanted, look):
        """Wait until the screen is equal to `wanted`. Returns the last screen, equal or not."""
        end = time.monotonic() + SECONDS
        while (text := look(screen)) != wanted and time.monotonic() < end:
            time.sleep(0.03)
        return text

    def play(self, name, columns, rows, *args, look=lambda s: masked(s.text()), scenes=SCENES):
        path = os.path.join(FOLDER, f'{PAINTER}-{name}.txt')
        screen, seen, wanted = self.open(columns, rows, *args), [], None
        if not RECORD:
            with open(path, encoding='utf-8') as file:
                wanted = dict(re.findall(r'(?ms)^=== (.*?)\n(.*?)(?=^=== |\Z)', file.read()))
            self.assertEqual(list(wanted), [scene[0] for scene in scenes])
        for title, keys, pattern in scenes:
            if keys == 'resize':
                screen.resize(columns * 3 // 4, rows + 3)
            elif keys:
                screen.send(*keys)
            if RECORD:
                seen.append((title, self.settled(screen, pattern, look)))
            else:
                text = self.becomes(screen, wanted[title].rstrip('\n'), look)
                self.assertEqual(text, wanted[title].rstrip('\n'), title)
        if RECORD:
            with open(path, 'w', encoding='utf-8') as file:
                file.write(''.join(f'=== {title}\n{text}\n' for title, text in seen))

    def test_80_by_24(self):
        self.play('80x24', 80, 24)

    def test_40_by_10(self):
        self.play('40x10', 40, 10)

    def test_20_by_5(self):
        self.play('20x5', 20, 5)

    def test_200_by_50(self):
        self.play('200x50', 200, 50)

    def looks(self, name, *args):
        self.play(name, 80, 24, *args, scenes=SCENES[:4],
                  look=lambda s: masked(named_looks(s.text('-e'))))

    def test_looks(self):
        self.looks('looks')

    def test_looks_without_colour(self):
        self.env['NO_COLOR'] = '1'
        self.looks('no-color')


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
