#!/usr/bin/env python3
"""
test_chat_gpu.py CHAT MAKE_MODEL DRIVER: tests the chat on a GPU that cannot be used, or that is lost
during an answer. The folder DRIVER has a stand-in for the driver library
(tests/engine/cuda/fake_cuda.c).
"""
import json
import os
import sys

DRIVER = sys.argv.pop(3)

from support.program_case import main  # noqa: E402  (it reads the command line)
from support.terminal_case import TerminalCase  # noqa: E402

LOST = rb'illegal memory access\)?; restart this program to use it again'
LOADED = 15  # launches: more than opening a model needs, fewer than a prompt needs


class Gpu(TerminalCase):
    def setUp(self):
        super().setUp()
        self.broken = self.gate('broken')
        self.env.update(LD_LIBRARY_PATH=os.path.abspath(DRIVER), FAKE_CUDA_BREAK=self.broken)

    def break_after(self, n_launches):
        with open(self.broken + '.new', 'w', encoding='utf-8') as file:
            file.write(str(n_launches))
        os.rename(self.broken + '.new', self.broken)

    def saved_messages(self):
        return self.saved(self.state('last.json'))

    def piped(self, *args, stdin=b''):
        return self.chat('--device', 'cuda', '-n', '3', '--temp', '0', *args, stdin=stdin)

    def test_a_lost_gpu_keeps_the_conversation_at_a_terminal(self):
        terminal = self.ready('--device', 'cuda', '-n', '3', '--temp', '0')
        self.ask(terminal, 'first')
        before = self.saved_messages()
        self.break_after(1)
        for question in ('second', 'third'):
            seen = self.ask(terminal, question, until=rb'start again with --continue')
            self.assertRegex(b' '.join(seen.split()), LOST)
            self.wait_for(lambda: self.saved_messages() == before)  # the file follows the message
            terminal.send(b'\x15')  # clears the question, which is in the editor again
        self.leave(terminal)
        os.unlink(self.broken)
        again = self.ready('--device', 'cuda', '-n', '3', '--temp', '0', '--continue')
        self.ask(again, 'second')
        self.assertEqual(self.saved_messages()[:len(before)], before)
        self.assertEqual(len(self.saved_messages()), len(before) + 2)
        self.leave(again)

    def test_a_lost_gpu_in_a_private_chat_advises_to_save(self):
        terminal = self.ready('--device', 'cuda', '-n', '3', '--private')
        self.ask(terminal, 'first')
        self.break_after(1)
        self.ask(terminal, 'second', until=rb'save the conversation with /save NAME')
        terminal.send(b'\x15/save here\r')
        terminal.expect(rb'saved')
        self.leave(terminal)

    def test_a_lost_gpu_ends_a_script_with_1(self):
        self.break_after(LOADED)
        for words in ((), ('--lines',)):
            done = self.piped(*words, stdin=b'hello\nagain\n')
            self.assertEqual(done.returncode, 1, done)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
            self.assertRegex(done.stderr, LOST)

    def test_a_partial_answer_is_saved(self):
        for n_launches in range(10, 1000, 10):  # some of these fail within the answer
            self.break_after(n_launches)
            terminal = self.ready('--device', 'cuda', '-n', '8', '--temp', '0')
            self.ask(terminal, 'x', until=rb'start again with --continue|\[\d+ tok')
            terminal.send(b'\x15\x04')
            self.left_clean(terminal, 0)
            if any(m['role'] == 'assistant' for m in self.saved_messages()):
                break
        self.assertEqual(self.saved_messages()[-1]['finish'], 'interrupted', self.saved_messages())
        self.assertRegex(b' '.join(terminal.seen.split()), LOST)

    def test_each_start_failure_is_one_line(self):
        for kind, words in (('no_device', b'CUDA_VISIBLE_DEVICES'),
                            ('hidden', b'CUDA_VISIBLE_DEVICES'),
                            ('old_driver', b'driver is too old: it supports CUDA 11.4'),
                            ('old_gpu', b'compute capability 7.5, at least 8.0')):
            self.env['FAKE_CUDA'] = kind
            done = self.piped(stdin=b'hello')
            self.assertEqual((done.returncode, done.stdout), (3, b''), done)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
            self.assertIn(words, done.stderr)
            done = self.chat('--device', 'auto', '--info', '--json')  # falls back to the CPU
            self.assertEqual(done.returncode, 0, done)
            self.assertNotIn('CUDA', json.loads(done.stdout)['device'])

    def test_memory_errors_contain_the_sizes(self):
        self.env['FAKE_CUDA_BYTES'] = '500000'
        done = self.piped(stdin=b'hello')
        self.assertEqual(done.returncode, 3, done)
        self.assertRegex(done.stderr, rb'needs [\d.]+ MB for weights, [\d.]+ MB for scratch')
        self.env['FAKE_CUDA_BYTES'] = str(40 << 20)
        done = self.piped('--ctx', '2000000', stdin=b'hello')
        self.assertEqual(done.returncode, 3, done)
        self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)
        fits = int(done.stderr.split(b'--ctx ')[1].split()[0])
        done = self.piped('--ctx', str(fits), '-q', stdin=b'hello')
        self.assertEqual((done.returncode, done.stderr), (0, b''), fits)


if __name__ == '__main__':
    main()
