#!/usr/bin/env python3
"""
test_job_control.py CHAT MAKE_MODEL: Ctrl-Z, bg, fg and kill in a bash that uses the terminal as a user's shell does.
In the background, the kernel stops a program that changes the terminal (SIGTTOU), and the call fails when the program
is continued. Skipped (77) without bash.
"""
import os
import re
import shlex
import shutil
import signal
import sys
import time

from support.idle import children_of
from support.program_case import PROGRAM, main
from support.terminal_case import PAINTERS, PROMPT, Terminal, TerminalCase, in_pieces

SHELL = rb'shell\$ '  # the prompt of bash


class Jobs(TerminalCase):
    def shell(self):
        self.env['PS1'] = 'shell$ '
        terminal = Terminal(['bash', '--norc', '--noprofile', '-i'], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(SHELL)
        terminal.before = terminal.modes()
        return terminal

    def command(self, *words):
        return shlex.join([PROGRAM, self.model, *words])

    def run_in(self, terminal, line, until=SHELL):
        return self.says_in(terminal, line + '\r', until)

    def shell_with_chat(self, words, keys=b''):
        """
        A shell with the chat in its foreground. The chat is at the prompt, or if keys are given, it has begun the
        answer to them. Returns the terminal, and the length of its output before the chat.
        """
        terminal = self.shell()
        start = len(terminal.seen)
        self.run_in(terminal, self.command(*words), rb'loaded in')
        if keys:
            self.says_in(terminal, keys, in_pieces(b'one'))
        return terminal, start

    def until_bash_says(self, terminal, report, start):
        """Let bash print prompts until it has reported this change of the job's state."""
        def reports():
            self.run_in(terminal, '')
            return report in terminal.seen[start:]
        self.wait_for(reports)

    def stop(self, terminal, keys, start):
        """Stop the chat, which runs in the foreground, and continue it in the background, where it stops again."""
        self.says_in(terminal, keys, SHELL)
        self.until_bash_says(terminal, b'Stopped', start)
        self.continue_in_background(terminal)

    def continue_in_background(self, terminal):
        """The chat stops again, because it needs the terminal."""
        start = len(terminal.seen)
        self.run_in(terminal, 'bg')
        self.until_bash_says(terminal, b'Stopped', start)

    def stop_from_outside(self, terminal, start):
        """Stop the chat, which runs in the foreground, by a signal that it cannot handle. Return its process."""
        [chat] = children_of(terminal.process.pid)
        os.kill(chat, signal.SIGSTOP)
        terminal.expect(rb'Stopped', start=start)
        terminal.expect(SHELL, start=terminal.seen.rindex(b'Stopped'))
        return chat

    def ends(self, terminal, line, report):
        """This command of the shell ends the chat in the background, and the terminal stays the shell's."""
        start = len(terminal.seen)
        self.run_in(terminal, line)
        self.until_bash_says(terminal, report, start)
        self.assertNotIn(b'\x1b[?1049', terminal.seen[start:])
        self.assertEqual(terminal.modes(), terminal.before)

    def goes_on(self, terminal):
        """The chat in the foreground answers and leaves. The shell's terminal is as it was."""
        self.run_in(terminal, 'fg; echo status=$?', PROMPT)
        self.says_in(terminal, b'\x15x\r', rb'\[\d+ tok')
        self.says_in(terminal, b'\x04', rb'status=0')
        terminal.expect(SHELL, start=terminal.seen.rindex(b'status=0'))
        self.assertEqual(terminal.modes(), terminal.before)

    def test_a_chat_goes_on_in_the_foreground_after_the_background(self):
        for words in PAINTERS:
            self.fake('fine')
            terminal, start = self.shell_with_chat(words)
            self.stop(terminal, b'half a line\x1a', start)
            self.goes_on(terminal)

    def test_an_answer_goes_on_after_the_background(self):
        for words in PAINTERS:
            gate = self.gate()
            self.fake('one \x1dtwo', hold=gate)
            terminal, start = self.shell_with_chat(words, b'go\r')
            self.stop(terminal, b'\x1a', start)
            self.write('gate', '')
            self.run_in(terminal, 'fg; echo status=$?', in_pieces(b'two') + rb'(?s:.*)\[\d+ tok')
            self.says_in(terminal, b'\x04', rb'status=0')

    def test_times_of_an_answer_are_without_its_stops(self):
        """The limit holds at any speed: the whole time, without a second in which the process was surely stopped."""
        for in_background in (False, True):
            gate = self.gate()
            self.fake('one \x1dtwo', hold=gate)
            begun = time.monotonic()
            terminal, start = self.shell_with_chat((), b'go\r')
            if in_background:
                self.stop(terminal, b'\x1a', start)
            else:
                self.says_in(terminal, b'\x1a', rb'Stopped(?s:.*)' + SHELL)
            stopped = time.monotonic()
            time.sleep(1)
            stopped = time.monotonic() - stopped
            self.write('gate', '')
            self.run_in(terminal, 'fg', rb'two(?s:.*)\[\d+ tok')
            most = time.monotonic() - begun - stopped
            self.says_in(terminal, b'/stats\r', rb'p99 [\d.]+ ms')
            [seconds] = re.findall(rb'generation +7 tok in ([\d.]+) s', terminal.seen)
            [gap] = re.findall(rb'p99 ([\d.]+) ms', terminal.seen)
            self.assertLess(float(seconds), most + 0.01)
            self.assertLess(float(gap) / 1000, most * 1.01)
            self.says_in(terminal, b'\x04', SHELL)

    def test_a_chat_that_starts_in_the_background_opens_in_the_foreground(self):
        for words in PAINTERS:
            self.fake('fine')
            terminal = self.shell()
            start = len(terminal.seen)
            self.run_in(terminal, self.command(*words) + ' &')
            self.until_bash_says(terminal, b'Stopped', start)
            self.assertNotIn(b'loaded in', terminal.seen)
            self.goes_on(terminal)

    def test_a_process_stopped_from_outside_leaves_the_terminal_to_the_shell(self):
        for words in PAINTERS:
            self.fake('fine')
            terminal, start = self.shell_with_chat(words)
            self.stop_from_outside(terminal, start)
            start = len(terminal.seen)
            self.continue_in_background(terminal)
            self.assertNotIn(b'\x1b[?1049', terminal.seen[start:])  # nothing is written over the shell
            self.goes_on(terminal)

    def test_kill_ends_a_stopped_chat(self):
        """bash sends SIGTERM and SIGCONT. The program must end without the terminal, which is the shell's."""
        for words in PAINTERS:
            self.fake('one \x1dtwo', hold=self.gate())
            for keys in (b'', b'go\r'):  # at the prompt, and during an answer
                terminal, start = self.shell_with_chat(words, keys)
                self.says_in(terminal, b'\x1a', SHELL)
                self.until_bash_says(terminal, b'Stopped', start)
                self.ends(terminal, 'kill %1', b'Exit 143')

    def test_kill_ends_a_chat_stopped_from_outside(self):
        """The program could not release the terminal before it was stopped, and must not do so in the background."""
        for words in PAINTERS:
            self.fake('one \x1dtwo', hold=self.gate())
            for keys in (b'', b'go\r'):
                for is_continued in (False, True):
                    terminal, start = self.shell_with_chat(words, keys)
                    self.stop_from_outside(terminal, start)
                    if is_continued:
                        self.continue_in_background(terminal)
                    self.ends(terminal, 'kill %1', b'Exit 143')

    def test_a_fatal_signal_in_the_background_leaves_the_terminal_to_the_shell(self):
        for words in PAINTERS:
            self.fake('fine')
            terminal, start = self.shell_with_chat(words)
            self.stop_from_outside(terminal, start)
            self.run_in(terminal, 'kill -USR1 %1')
            self.ends(terminal, 'bg', b'User defined signal 1')

    def test_a_signal_to_a_stopped_chat_restores_the_terminal_in_the_foreground(self):
        for words in PAINTERS:
            self.fake('fine')
            terminal, start = self.shell_with_chat(words)
            os.kill(self.stop_from_outside(terminal, start), signal.SIGTERM)
            start = len(terminal.seen)
            self.run_in(terminal, 'fg; echo status=$?; stty -a', rb'status=143')
            terminal.expect(rb' icanon ', start=start)
            terminal.expect(SHELL, start=terminal.seen.rindex(b'status=143'))
            self.assertEqual(terminal.modes(), terminal.before)

    def test_kill_ends_a_chat_that_waits_for_the_foreground_to_open(self):
        terminal = self.shell()
        start = len(terminal.seen)
        self.run_in(terminal, self.command() + ' &')
        self.until_bash_says(terminal, b'Stopped', start)
        start = len(terminal.seen)
        self.ends(terminal, 'kill %1', b'Exit 143')
        self.assertNotIn(b'bitnet-chat: ', terminal.seen[start:])


if __name__ == '__main__':
    if not shutil.which('bash'):
        sys.exit(77)
    main()
