"""
A terminal with a screen for tests: tmux interprets what the program writes. Patterns are searched in the text
of the screen without the newlines at its end.
"""
import itertools
import os
import re
import shlex
import signal
import subprocess
import time

from support.idle import (QUIET_AFTER_RESIZE_SECONDS, QUIET_SECONDS, children_of, has_no_input, sleeps,
                          wait_until_quiet)


class Screen:
    """One program in a tmux server of its own, with its own socket and no configuration."""
    numbers = itertools.count()

    def __init__(self, folder, env, words, columns, rows):
        self.socket = os.path.join(folder, f'tmux{next(Screen.numbers)}')
        self.env = dict(env, TERM='xterm-256color')
        command = ' '.join(shlex.quote(word) for word in words)
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(columns), '-y', str(rows),
                  command + '; echo left with $?; exec sleep 1000')
        server, self.shell, self.tty = self.tmux('display-message', '-p', '#{pid} #{pane_pid} #{pane_tty}').split()
        self.server = int(server)
        self.size = (columns, rows)
        self.is_resized = False

    def tmux(self, *args):
        done = subprocess.run(['tmux', '-S', self.socket, *args], env=self.env, timeout=30,
                              capture_output=True, check=True)
        return done.stdout.decode()

    def text(self, *args):
        return self.tmux('capture-pane', '-p', *args)

    def settle(self):
        """Wait until tmux has reported the last size, and the program has dealt with all keys and writes nothing
        more."""
        wait_until_quiet(self.is_quiet, self.text,
                         QUIET_AFTER_RESIZE_SECONDS if self.is_resized else QUIET_SECONDS)
        self.is_resized = False

    def ask_terminal(self, question):
        """Call question(descriptor of the program's terminal)."""
        terminal = os.open(self.tty, os.O_RDWR | os.O_NOCTTY)
        try:
            return question(terminal)
        finally:
            os.close(terminal)

    def has_reported_size(self):
        """Whether tmux has reported the last size to the program."""
        return tuple(self.ask_terminal(os.get_terminal_size)) == self.size

    def is_quiet(self):
        time.sleep(0.01)
        return (self.has_reported_size() and self.ask_terminal(has_no_input)
                and all(map(sleeps, [self.server, *children_of(self.shell)])))

    def expect(self, pattern, seconds=60, args=()):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.text(*args).rstrip('\n')):
            if time.monotonic() > deadline:
                raise AssertionError(f'{pattern!r} is not on the screen:\n{self.text(*args)}')
            time.sleep(0.03)

    def change_painter(self):
        """
        Press F2 and wait until the other painter has the terminal. The full screen is tmux's alternate screen. Text
        is no sign: both painters show the conversation and the prompt.
        """
        before = self.tmux('display-message', '-p', '#{alternate_on}')
        self.send('F2')
        deadline = time.monotonic() + 60
        while self.tmux('display-message', '-p', '#{alternate_on}') == before:
            if time.monotonic() > deadline:
                raise AssertionError(f'the painter does not change:\n{self.text()}')
            time.sleep(0.03)

    def send(self, *keys):
        self.tmux('send-keys', *keys)

    def key(self, hexadecimal):
        """Send the bytes of one key together."""
        self.tmux('send-keys', '-H', *re.findall('..', hexadecimal))

    def cursor(self):
        place = self.tmux('display-message', '-p', '#{cursor_x} #{cursor_y}').split()
        return int(place[0]), int(place[1])

    def resize(self, columns, rows):
        self.size = (columns, rows)
        self.is_resized = True
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))

    def close(self):
        """
        Kill the program. After a hang-up only, a build with the leak checker would still check for leaks and
        may not end in time.
        """
        try:
            os.killpg(int(self.tmux('display-message', '-p', '#{pane_pid}')), signal.SIGKILL)
        except (subprocess.CalledProcessError, ProcessLookupError):
            pass  # already closed
        subprocess.run(['tmux', '-S', self.socket, 'kill-server'], env=self.env, timeout=30,
                       capture_output=True, check=False)
