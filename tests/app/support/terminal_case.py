"""
The chat on a pseudo-terminal that only records what the program writes, and base classes for tests with it.
How a screen looks afterwards is tested with tmux (terminal_screen.py).
"""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from support.chat_case import ChatCase
from support.idle import CPU_TICKS, cpu_ticks, has_no_input, sleeps, wait_until_quiet
from support.program_case import PROGRAM

PASTE_ON, PASTE_OFF = b'\x1b[?2004h', b'\x1b[?2004l'  # bracketed paste
ENTER, LEAVE = b'\x1b[?1049h', b'\x1b[?1049l'  # the alternate screen
PROMPT = rb'>>> '
PAINTERS = ([], ['--tui'])


def in_pieces(text):
    """A pattern for text of an answer. Of a slow one, the painters write each part as soon as it has arrived."""
    return b'(?s:.*?)'.join(re.escape(bytes([byte])) for byte in text)


class Terminal:
    """The program on a pseudo-terminal. `seen` holds all that it wrote."""

    def __init__(self, words, env, rows=24, columns=80, folder=None, keeps_output=False):
        """keeps_output: a key such as Ctrl-Z does not discard the output that was not read yet (NOFLSH)."""
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        if keeps_output:
            modes = termios.tcgetattr(self.slave)
            modes[3] |= termios.NOFLSH
            termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.before = self.modes()
        self.seen = b''
        self.process = subprocess.Popen(
            words, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=env, cwd=folder,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def read(self, seconds):
        """Read what arrives within the time. Returns whether anything did."""
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return False
            return True
        return False

    def expect(self, pattern, seconds=60, start=0):
        """Wait until `pattern` is in seen[start:]."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen[start:]):
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f'{pattern!r} was not written: ...{self.seen[-600:]!r}')
            self.read(left)

    def send(self, keys):
        keys = keys if isinstance(keys, bytes) else keys.encode()
        while keys:
            keys = keys[os.write(self.master, keys[:1024]):]
            self.read(0)

    def wait_until_read(self):
        """Wait until the program has read all keys. It may not have dealt with them, as within a paste."""
        deadline = time.monotonic() + 60
        while not has_no_input(self.slave):
            if time.monotonic() > deadline:
                raise AssertionError(f'the program does not read: ...{self.seen[-600:]!r}')
            self.read(0.01)

    def settle(self):
        """Wait until the program has dealt with all keys and writes nothing more."""
        wait_until_quiet(lambda: not self.read(0.01) and has_no_input(self.slave) and sleeps(self.process.pid),
                         lambda: f'...{self.seen[-600:]!r}')

    def cpu_seconds(self):
        """Processor time of the program. Unlike elapsed time, it depends little on the load of the machine."""
        return cpu_ticks(self.process.pid) / CPU_TICKS

    def percent_of_cpu(self, seconds):
        """The load of one processor by the program during this time, in whole percent, rounded up."""
        before = cpu_ticks(self.process.pid)
        time.sleep(seconds)
        return -(-100 * (cpu_ticks(self.process.pid) - before) // (seconds * CPU_TICKS))

    def modes(self):
        return termios.tcgetattr(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def wait_for_modes(self):
        """Wait until the program has restored the terminal's modes and switched bracketed paste off."""
        deadline = time.monotonic() + 60
        while self.modes() != self.before or self.seen.count(PASTE_ON) != self.seen.count(PASTE_OFF):
            if time.monotonic() > deadline:
                raise AssertionError('the terminal is not restored')
            self.read(0.05)

    def wait_a_bit(self, seconds):
        """Read for this time, or all that the program writes before it ends."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        if self.process.poll() is not None:
            self.read_rest()

    def wait(self, seconds=60):
        self.wait_a_bit(seconds)
        while self.read(0):
            pass
        return self.process.wait(timeout=30)

    def hang_up(self):
        """Close the terminal. Nothing can be read or sent afterwards."""
        os.close(self.master)
        self.master = None

    def read_rest(self):
        """
        Read all that the program wrote before it ended. The kernel passes the bytes on in the background, maybe later
        than the program ends. They have arrived when a mark has, which is written after them.
        """
        mark, deadline = b'\x00end\x00', time.monotonic() + 30
        other = os.open(os.ttyname(self.slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            while True:
                try:
                    os.write(other, mark)
                    break
                except BlockingIOError:
                    os.write(self.master, b'\x11')  # Ctrl-Q: the output was stopped by a Ctrl-S
                    self.read(0.05)
                if time.monotonic() > deadline:
                    raise AssertionError('the terminal takes no more output')
        finally:
            os.close(other)
        while mark not in self.seen:
            if not self.read(30):
                raise AssertionError('the output of the program does not arrive')
        self.seen = self.seen.replace(mark, b'')

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.master is not None:
            os.close(self.master)
        os.close(self.slave)


class TerminalCase(ChatCase):
    def start(self, words, **size):
        """Run these words on a terminal."""
        terminal = Terminal(words, self.env, **size)
        self.addCleanup(terminal.close)
        return terminal

    def open(self, *args, **size):
        return self.start([PROGRAM, self.model, *args], **size)

    def ready(self, *args, **size):
        """A chat with a loaded model and a visible prompt."""
        terminal = self.open(*args, **size)
        terminal.expect(rb'loaded in')
        # The full-screen painter does not write an unchanged prompt again.
        terminal.expect(PROMPT, start=0 if '--tui' in args else terminal.seen.index(b'loaded in'))
        return terminal

    def ask(self, terminal, text, until=rb'\[\d+ tok'):
        """Send a message and wait for the answer and the next prompt. Returns what was written."""
        start = len(terminal.seen)
        terminal.send(text + '\r')
        terminal.expect(until, start=start)
        terminal.expect(PROMPT, start=start + re.search(until, terminal.seen[start:]).end())
        return terminal.seen[start:]

    def says_in(self, terminal, keys, pattern=rb'\[\d+ tok'):
        """Send keys and wait for the pattern, which both painters must write. Returns what was written."""
        start = len(terminal.seen)
        terminal.send(keys)
        terminal.expect(pattern, start=start)
        return terminal.seen[start:]

    def ask_held(self, terminal, keys):
        """
        Send keys and wait until the answer waits for the file of `hold`, and all of its text before that is written. Do
        not wait for that text: the painters may write it in several pieces.
        """
        waiting = self.gate('waiting')
        terminal.send(keys)
        self.read_until(terminal, lambda: os.path.exists(waiting))
        terminal.settle()

    def read_until(self, terminal, holds):
        """Wait until holds() is true. Reads meanwhile, because a program whose terminal nobody reads would block."""
        def reads_and_holds():
            terminal.read(0.01)
            return holds()
        self.wait_for(reads_and_holds)

    def pastes_in_linear_time(self, terminal):
        """Paste 0.3 and 1.3 MB, and compare the processor times, so that the speed of the machine does not matter."""
        costs = []
        for n_lines in (4000, 16000):
            before = terminal.cpu_seconds()
            self.says_in(terminal, '\x1b[200~' + ('x' * 79 + '\r') * n_lines + '\x1b[201~',
                         rb'pasted \d: %d lines' % n_lines)
            costs.append(terminal.cpu_seconds() - before)
            terminal.send(b'\x03')
        self.assertLess(costs[1], 8 * max(costs[0], 0.05))  # four times the lines; a quadratic cost is 16 times

    def use_editor(self, script):
        """Let Ctrl-X Ctrl-E run this shell script, whose $1 is the file with the text."""
        path = self.write('editor', '#!/bin/sh\n' + script)
        os.chmod(path, 0o755)
        self.env['EDITOR'] = path

    def messages(self, role='user'):
        """Texts of this role in the last conversation, as the program saved it."""
        return [m['content'] for m in self.saved(self.state('last.json')) if m['role'] == role]

    def half_typed_and_stopped(self, *words):
        """
        A chat that was stopped with Ctrl-Z after half a line. It runs under a shell with job control,
        because a process without a job-control shell does not stop. The shell continues it after a line.
        """
        command = 'set -m; "$0" "$@"; read x; fg'
        terminal = Terminal(['sh', '-c', command, PROGRAM, *words, self.model], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(rb'loaded in')
        terminal.send(b'half a line')
        terminal.expect(b'half a line')
        terminal.send(b'\x1a')
        terminal.wait_for_modes()
        return terminal

    def typed(self, *words):
        """A chat with the terminal as input and a file as output. Returns the terminal and the file's path."""
        path = self.path('typed')
        terminal = Terminal(['sh', '-c', 'out=$1; shift; exec "$0" "$@" > "$out"', PROGRAM, path, self.model, *words],
                            self.env)
        self.addCleanup(terminal.close)
        terminal.expect(PROMPT)
        return terminal, path

    def left_clean(self, terminal, code):
        """The program must exit with `code` and leave the terminal's modes as they were."""
        self.assertEqual(terminal.wait(), code, terminal.seen[-500:])
        self.assertEqual(terminal.modes(), terminal.before)
        self.assertEqual(terminal.seen.count(PASTE_ON), terminal.seen.count(PASTE_OFF))
        self.assertLessEqual(terminal.seen.rfind(PASTE_ON), terminal.seen.rfind(PASTE_OFF))

    def leave(self, terminal):
        terminal.send(b'\x04')
        self.left_clean(terminal, 0)
