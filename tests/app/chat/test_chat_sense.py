#!/usr/bin/env python3
"""
test_chat_sense.py CHAT MAKE_MODEL: when the sense check runs, and what the chat says about its verdict. With a
scripted generator, which gives the verdict. The real measure is tested with the built-in model in test_demo.py.
"""
import json
import os
import re
import signal
import subprocess

from support.program_case import PROGRAM, main
from support.terminal_case import PAINTERS, TerminalCase

WARNING = (b"bitnet-chat: warning: the model predicts a short English text worse than word frequencies "
           b"do: its loss is 2.0, that of the frequencies is 1.5. Expect nonsense: the file may be damaged, or its "
           b"weights may have another layout. 'bitnet-inspect check FILE' tests both.\n")
SHOWN = rb'Expect\s+nonsense'


class Pipes(TerminalCase):
    def test_one_prompt_gets_its_warning_and_exit_status_0(self):
        self.fake('Hello.', sense='nonsense')
        for words, stdin in ((('hi',), b''), ((), b'hi'), (('--lines',), b'hi\n'), (('-i',), b'hi\n')):
            done = self.chat(*words, stdin=stdin)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'Hello.\n', WARNING), words)

    def test_many_prompts_get_one_warning(self):
        self.fake('Hello.', sense='nonsense')
        for word in ('--lines', '-i'):
            done = self.chat(word, stdin=b'a\nb\nc\n')
            self.assertEqual((done.returncode, done.stderr), (0, WARNING))
            self.assertEqual(done.stdout.count(b'Hello.'), 3)

    def test_json_is_not_mixed_with_the_warning(self):
        self.fake('Hello.', sense='nonsense')
        done = self.chat('--json', 'hi')
        self.assertEqual((json.loads(done.stdout)['text'], done.stderr), ('Hello.', WARNING))

    def test_no_verdict_and_a_good_one_say_nothing(self):
        for script in ({}, {'sense': 'right'}):
            self.fake('Hello.', **script)
            self.assertEqual(self.says('hi'), b'Hello.\n')

    def test_quiet_the_option_and_the_config_file_switch_it_off(self):
        started = self.gate('started')
        self.fake('Hello.', sense='nonsense', checking=started)
        self.assertEqual(self.says('-q', 'hi'), b'Hello.\n')
        self.assertEqual(self.says('--no-check', 'hi'), b'Hello.\n')
        self.write_in_home('.config/bitnet-chat/config', 'check = off\n')
        self.assertEqual(self.says('hi'), b'Hello.\n')
        self.assertFalse(os.path.exists(started))

    def test_the_first_token_does_not_wait_for_it(self):
        """The answer waits within its first token; the check begins only after the answer."""
        begun, hold, started = self.gate('begun'), self.gate('hold'), self.gate('started')
        self.fake('\x1dHello.', sense='nonsense', begun=begun, hold=hold, checking=started)
        process = subprocess.Popen([PROGRAM, self.model, 'hi'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env)
        self.addCleanup(process.kill)
        self.wait_for(lambda: os.path.exists(begun))
        self.assertFalse(os.path.exists(started))
        self.write('hold', '')
        self.assertEqual(process.communicate(timeout=60), (b'Hello.\n', WARNING))
        self.assertTrue(os.path.exists(started))

    def test_the_program_waits_for_the_verdict(self):
        started, gate = self.gate('started'), self.gate('gate')
        self.fake('Hello.', sense='nonsense', checking=started, check_until=gate)
        process = subprocess.Popen([PROGRAM, self.model, 'hi'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env)
        self.addCleanup(process.kill)
        self.wait_for(lambda: os.path.exists(started))
        self.assertEqual(process.stdout.readline(), b'Hello.\n')
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        self.write('gate', '')
        self.assertEqual(process.communicate(timeout=60), (b'', WARNING))
        self.assertEqual(process.returncode, 0)

    def test_an_interrupt_ends_it(self):
        started = self.gate('started')
        self.fake('Hello.', sense='nonsense', checking=started, check_until=self.gate('never'))
        process = subprocess.Popen([PROGRAM, self.model, 'hi'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env)
        self.addCleanup(process.kill)
        self.wait_for(lambda: os.path.exists(started))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60), (b'Hello.\n', b''))
        self.assertEqual(process.returncode, 130)

    def test_the_log_has_the_numbers(self):
        log = self.gate('log')
        numbers = r'loss 2\.00, bound 1\.50 nats per token, in \d+\.\d\d\d s\n'
        for verdict, line in (('right', 'passed, ' + numbers), ('nonsense', 'nonsense, ' + numbers),
                              ('', 'no verdict, because the generator is scripted\n')):
            self.fake('Hello.', **({'sense': verdict} if verdict else {}))
            self.chat('--log', log, 'hi')
            with open(log, encoding='utf-8') as file:
                self.assertRegex(file.read(), 'sense check: ' + line)


class Terminals(TerminalCase):
    def test_the_notice_comes_before_any_message(self):
        self.fake('Hello.', sense='nonsense')
        for painter in PAINTERS:
            terminal = self.ready(*painter)
            terminal.expect(SHOWN)
            self.says_in(terminal, 'hi\r')
            self.assertEqual(len(re.findall(SHOWN, terminal.seen)), 1)
            self.leave(terminal)
            self.assertEqual(self.messages(), ['hi'])

    def test_quiet_shows_no_notice(self):
        started = self.gate('started')
        self.fake('Hello.', sense='nonsense', checking=started)
        for word in ('-q', '--no-check'):
            terminal = self.open(word)
            terminal.expect(rb'>>> ')
            self.ask(terminal, 'hi', until=rb'Hello')
            self.leave(terminal)
            self.assertNotRegex(terminal.seen, SHOWN)
        self.assertFalse(os.path.exists(started))

    def test_a_message_interrupts_it_and_it_runs_again_afterwards(self):
        started, gate = self.gate('started'), self.gate('gate')
        self.fake('Hello.', sense='nonsense', checking=started, check_until=gate)
        terminal = self.ready()
        self.wait_for(lambda: os.path.exists(started))
        os.unlink(started)
        self.ask(terminal, 'hi')  # is answered although the check cannot end
        self.wait_for(lambda: os.path.exists(started))
        self.assertNotRegex(terminal.seen, SHOWN)
        self.write('gate', '')
        terminal.expect(SHOWN)
        self.leave(terminal)
        self.assertEqual(len(self.messages('assistant')), 1)

    def test_keys_and_commands_do_not_wait_for_it(self):
        started = self.gate('started')
        self.fake('Hello.', sense='nonsense', checking=started, check_until=self.gate('never'))
        for painter in PAINTERS:
            self.gate('started')
            terminal = self.ready(*painter)
            self.wait_for(lambda: os.path.exists(started))
            self.says_in(terminal, b'\x03', rb'Ctrl-D')
            self.says_in(terminal, b'/stats peak\r', rb'40\.0\s+GB/s')
            self.leave(terminal)
            self.assertNotRegex(terminal.seen, SHOWN)


if __name__ == '__main__':
    main()
