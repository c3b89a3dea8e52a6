#!/usr/bin/env python3
"""
test_key_fuzz.py CHAT MAKE_MODEL [SECONDS [SEED]]: random keys, pastes, resizes and signals at a terminal, in
both painters, with a scripted generator. The program must not crash, its memory must stay bounded, a command
must still work afterwards, and the terminal must be restored at exit.

Without SECONDS a few rounds run with fixed seeds, otherwise rounds until the time is over. A failed round
prints its seed. SECONDS 0 with that SEED repeats its keys.
"""
import glob
import os
import random
import signal
import sys
import tempfile
import time

SECONDS, SEED = (sys.argv[3:] + [None, None])[:2]
del sys.argv[3:]

from support.chat_case import LEAKS  # noqa: E402  (it reads the command line)
from support.program_case import main  # noqa: E402
from support.terminal_case import ENTER, LEAVE, PASTE_OFF, PASTE_ON, TerminalCase  # noqa: E402

SHORT_SEEDS = (1, 2, 3)
MAX_GROWTH = 100 << 20  # bytes of resident memory in a round
KEYS = [bytes([c]) for c in range(32) if c != 0x1c] + [  # except SIGQUIT's key, which ends the program
    b'\x7f', b'\r', b'\r', b'\r', b'\n', b'\t\t', b'\x1b\r', b'\x18\x05', b'\x18(', b'\x18)', b'\x18e',
    b'\x1b[A', b'\x1b[B', b'\x1b[C', b'\x1b[D', b'\x1bOA', b'\x1bOB', b'\x1b[5~', b'\x1b[6~', b'\x1b[3~',
    b'\x1b[H', b'\x1b[F', b'\x1b[1;5H', b'\x1b[1;5F', b'\x1bOQ', b'\x1b[12~', b'\x1b[1;5C', b'\x1b[Z',
    b'\x1bf', b'\x1bb', b'\x1bd', b'\x1by', b'\x1bt', b'\x1b.', b'\x1b#', b'\x1b?', b'\x1b*', b'\x1b9',
    b'\x1b-', b'\x12', b'\x16', b'\x1f', b'"""', b'\\\r']
TEXTS = [b'hello', b'what is this? ', '漢字'.encode(), 'e\u0301'.encode(), '👨‍👩‍👧'.encode(), b'@file00',
         b'/', b'//', b'/se\t', b'/set te\t', b' ', b'\xff\xfe', b'\xe6\xbc', b'\xc2\x9b', b'\x1b]0;t\x07',
         b'\x1b' * 40, b'\x1b[' + b'9' * 300 + b'~', b'x' * 500]
COMMANDS = ['help', 'help keys', 'set', 'set temp 0.5', 'set temp 9e9', 'set wrap off', 'set color never',
            'set stats off', 'set markdown off',
            'system be brief', 'system', 'retry', 'retry temp=2', 'edit', 'edit 2', 'undo',
            'undo 3', 'redo', 'continue', 'clear', 'clear', 'forget', 'history', 'find o+', 'find (', 'context',
            'file file00', 'file nothing', 'save', 'load last', 'sessions', 'export x.md!', 'copy',
            'copy code', 'stats',
            'info', 'tokens abc', 'dump', 'probs 2', 'probs off', 'ui full', 'ui inline', 'nonsense']
ANSWERS = ('a short one', 'long words and more of them ' * 60, '漢字' * 50 + ' e\u0301 ' * 20,
           b'\x1b[2J\x9b\xff\x00\x07\xe2\x80\xae', '```c\nint x;\n```\n# title\n- item **bold** `code`\n' * 8,
           'no-blank' * 100, '')


class Left(Exception):
    """The program has ended by itself."""


class KeyFuzz(TerminalCase):
    def setUp(self):
        super().setUp()
        for i in range(120):  # more than Readline lists without a confirmation
            with open(os.path.join(self.home.name, f'file{i:02}'), 'w', encoding='utf-8') as file:
                file.write('text\n')
        self.logs = tempfile.TemporaryDirectory()
        log = ':log_path=' + os.path.join(self.logs.name, 'report')
        log += ':quarantine_size_mb=8:allow_user_segv_handler=0'
        self.env['ASAN_OPTIONS'] = self.env.get('ASAN_OPTIONS', '') + log
        self.env['UBSAN_OPTIONS'] = self.env.get('UBSAN_OPTIONS', '') + log + ':halt_on_error=1'
        leaks = os.path.join(self.logs.name, 'leaks')
        with open(LEAKS, encoding='utf-8') as known, open(leaks, 'w', encoding='utf-8') as file:
            # Readline leaks its undo list when a line ends within a command.
            file.write(known.read() + 'leak:libreadline\n')
        self.env['LSAN_OPTIONS'] = f'suppressions={leaks}:print_suppressions=0'
        self.env.update(EDITOR='true', INPUTRC='/dev/null', PATH='/usr/bin:/bin')
        self.addCleanup(self.logs.cleanup)

    def begin(self, seed):
        """Start a chat. Painter, size, generator and all later actions depend on the seed only."""
        self.rng = random.Random(seed)
        rng = self.rng
        answers = rng.sample(ANSWERS, 3)
        self.fake(*answers, token_ms=rng.choice((0, 0, 2)), read_us=rng.choice((0, 0, 500)),
                  endless=rng.choice((0, 0, 0, 1)), n_ctx=rng.choice((300, 4096)),
                  load_ms=rng.choice((0, 200)))
        words = rng.choice((['--tui'], ['--tui', '--private'], [], ['--plain'], ['--private']))
        words = words if seed > 2 else [['--tui'], []][seed - 1]
        self.env['TERM'] = rng.choice(('xterm', 'xterm', 'xterm-256color', 'screen', 'vt100', 'linux'))
        self.done = []
        self.interrupted = False
        self.terminal = self.open(*words, rows=rng.randint(1, 40), columns=rng.randint(1, 120),
                                  folder=self.home.name, keeps_output=True)
        self.terminal.expect(b'2004h|>')
        self.n_start = self.resident()

    def resident(self):
        if self.terminal.process.poll() is not None:
            raise Left
        try:
            with open(f'/proc/{self.terminal.process.pid}/statm', encoding='utf-8') as file:
                return int(file.read().split()[1]) * 4096
        except ProcessLookupError:
            raise Left from None

    def act(self):
        """Do one random action and record it for the report."""
        rng, terminal = self.rng, self.terminal
        kind = rng.choices(('key', 'text', 'command', 'paste', 'bytes', 'resize', 'signal'),
                           (40, 20, 12, 5, 8, 8, 4))[0]
        keys = b''
        if kind == 'key':
            keys = rng.choice(KEYS) * rng.choice((1, 1, 1, 5))
        elif kind == 'text':
            keys = rng.choice(TEXTS) + rng.choice((b'', b'\r'))
        elif kind == 'command':
            keys = f'\x15/{rng.choice(COMMANDS)}\r'.encode()
        elif kind == 'paste':
            body = rng.choice((rng.randbytes(200).replace(b'\x1c', b''), b'/quit\r', b'',
                               b'line\r' * rng.randint(1, 2000)))
            keys = rng.choice((b'\x1b[200~', b'')) + body + rng.choice((b'\x1b[201~', b''))
        elif kind == 'bytes':
            keys = rng.randbytes(rng.randint(1, 60)).replace(b'\x1c', b'')
        elif kind == 'resize':
            keys = (rng.randint(1, 60), rng.choice((1, 2, rng.randint(1, 300))))
            self.done.append((kind, keys))
            terminal.resize(*keys)
            return
        elif kind == 'signal':
            number = rng.choice((signal.SIGWINCH, signal.SIGINT, signal.SIGCONT, signal.SIGTSTP))
            self.done.append((kind, number.name))
            self.interrupted |= number == signal.SIGINT
            terminal.process.send_signal(number)
            return
        self.interrupted |= b'\x03' in keys
        self.done.append((kind, keys))
        terminal.send(keys)

    def settle(self, seconds):
        """Read until nothing arrives, at most for this time."""
        end = time.monotonic() + seconds
        while self.terminal.read(0.01) and time.monotonic() < end:
            pass

    def check_command(self):
        """Stop the answer, clear the line and run /save, which must still work. Then leave with /quit."""
        path = os.path.join(self.home.name, f'sane{len(self.done)}.json')
        terminal = self.terminal
        if os.path.exists(path):  # from another round
            os.unlink(path)
        terminal.resize(24, 80)
        deadline = time.monotonic() + 40
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline, 'a command does not work')
            self.interrupted = True
            for keys in (b'\x1b[201~', b'\x03', b'\x03', f'\x15/save {path}\r'.encode()):
                self.resident()
                terminal.send(keys)
                self.settle(0.3)
            for _ in range(10):
                if not os.path.exists(path):
                    self.settle(0.1)
                    time.sleep(0.02)
        terminal.send(b'\x15/quit\r')

    def end_round(self):
        """End the program in a random way. Returns the allowed exit statuses."""
        way = self.rng.choice(('quit', 'quit', 'SIGTERM', 'SIGHUP'))
        self.done.append(('leave', way))
        if way == 'quit':
            self.check_command()
            return (0,)
        self.resident()
        self.terminal.process.send_signal(signal.Signals[way])
        return (128 + signal.Signals[way],)

    def round(self, seed):
        self.begin(seed)
        try:
            allowed = None
            for _ in range(self.rng.randint(10, 60)):
                self.act()
                self.settle(self.rng.choice((0, 0.02, 0.1)))
                growth = self.resident() - self.n_start
                self.assertLess(growth, MAX_GROWTH, 'memory grows')
            allowed = self.end_round()
        except (Left, BrokenPipeError):
            pass
        except OSError as error:  # the terminal closes when its last program ends
            if self.terminal.process.poll() is None:
                raise AssertionError('no terminal') from error
        # Ctrl-D and /quit exit with 0, a second Ctrl-C while the engine is slow with 130
        allowed = (allowed or (0,)) + ((130,) if self.interrupted else (0,))
        code = self.terminal.wait(20)
        self.assertIn(code, allowed)
        seen = self.terminal.seen
        self.assertEqual(self.terminal.modes(), self.terminal.before, 'modes')
        self.assertEqual(seen.count(PASTE_ON), seen.count(PASTE_OFF), 'paste marks')
        self.assertEqual(seen.count(ENTER), seen.count(LEAVE), 'screens')
        self.assertEqual(self.reports(), [], 'reports of a sanitizer')
        self.terminal.close()
        self._cleanups.pop()
        return code

    def reports(self):
        return glob.glob(os.path.join(self.logs.name, 'report*'))

    def play(self, seed):
        try:
            self.round(seed)
        except BaseException:
            print(f'seed {seed}, TERM={self.env["TERM"]}, {self.env["BITNET_FAKE"]}')
            print('\n'.join(map(repr, self.done)))
            print(repr(self.terminal.seen[-1500:]))
            for path in self.reports():
                with open(path, encoding='utf-8', errors='replace') as file:
                    print(file.read(5000))
            raise

    def test_random_keys_break_nothing(self):
        if SECONDS is None:
            for seed in SHORT_SEEDS:
                self.play(seed)
            return
        seed, end = int(SEED or 1), time.monotonic() + float(SECONDS)
        self.play(seed)
        while time.monotonic() < end:
            seed += 1
            self.play(seed)
        print(f'last seed: {seed}')


if __name__ == '__main__':
    main()
