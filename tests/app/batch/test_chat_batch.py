#!/usr/bin/env python3
"""
test_chat_batch.py CHAT MAKE_MODEL: many prompts at once (--batch), with the engine and a tiny generated model.
"""
import json
import re
import select
import shutil
import signal
import socket
import subprocess
import time
import unittest

from support.chat_case import ChatCase
from support.idle import CPU_TICKS, catches, cpu_ticks
from support.program_case import PROGRAM, main


class Batch(ChatCase):
    PROMPTS = ('one', 'a much longer prompt than the others', 'two', 'three', 'x', 'four', 'five', 'y' * 90,
               'six')

    def test_a_batch_of_any_width_answers_as_each_prompt_alone(self):
        words = ('-n', '24', '--seed', '5', '--stop', 'zz')
        alone = [self.says(*words, stdin=prompt.encode()) for prompt in self.PROMPTS]
        self.assertGreater(len(set(alone)), 5)
        stdin = '\n'.join(self.PROMPTS).encode() + b'\n\n  \n'
        for width in ('1', '2', '7', '64', 'auto'):
            self.assertEqual(self.says('--batch', width, *words, stdin=stdin), b'\n'.join(alone), width)
        self.assertEqual(self.says('--batch', '7', '--ubatch', '3', *words, stdin=stdin), b'\n'.join(alone))

    def test_an_automatic_batch_is_as_wide_as_memory_allows(self):
        for ctx, wanted in (('64', r'^bitnet-chat: decoding 16 prompts together\n$'),
                            ('4000000', r'^bitnet-chat: warning: a context of 4000000 tokens .*\n'
                                        r'bitnet-chat: decoding ([1-9]|1[0-6]) prompts? together\n$')):
            done = self.chat('--batch', 'auto', '--verbose', '-c', ctx, '-n', '2', stdin=b'one\ntwo\n')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr.decode(), wanted)

    def test_a_batch_of_objects_keeps_order_and_names(self):
        asked = [{'prompt': prompt, 'id': {'n': i}, 'max_tokens': 3 + 5 * (i % 4), 'seed': i, 'temp': 0.5,
                  'system': 'be brief'} for i, prompt in enumerate(self.PROMPTS)]
        stdin = '\n'.join(json.dumps(o) for o in asked).encode()
        runs = []
        for width in ('1', '3'):
            lines = self.says('--batch', width, '--json', stdin=stdin).splitlines()
            answers = [json.loads(line) for line in lines]
            self.assertEqual([a['id']['n'] for a in answers], list(range(len(asked))))
            self.assertEqual([a['line'] for a in answers], list(range(1, len(asked) + 1)))
            for answer, o in zip(answers, asked):
                self.assertLessEqual(answer['completion_tokens'], o['max_tokens'])
                self.assertEqual(answer['seed'], o['seed'])
            runs.append([a['text'] for a in answers])
        self.assertEqual(*runs)
        one = self.says('-s', 'be brief', '--temp', '0.5', '--seed', '2', '-n', '13', stdin=b'two')
        self.assertEqual(one.decode(errors='replace'), runs[0][2] + '\n')

    def test_the_log_has_a_line_for_each_answer(self):
        log = self.path('log')
        self.says('--batch', '2', '-n', '3', '--seed', '1', '--log', log, '--check', stdin=b'secret\nother\n')
        with open(log, encoding='utf-8') as file:
            text = file.read()
        self.assertRegex(text, r'\d\.\d{3} bitnet-chat \S+: loaded .*, context \d+, in')
        self.assertEqual(len(re.findall(r'answer: \w+ \[\d+ tok.*seed \d+\]', text)), 2, text)
        self.assertIn('sense check: ', text)
        self.assertNotIn('secret', text)
        self.refuses(5, '--batch', '2', '--log', self.path('missing/log'), stdin=b'x\n')
        done = self.chat('--batch', '2', '-n', '3', '--log', '/dev/full', stdin=b'a\nb\nc\n')
        self.assertEqual((done.returncode, done.stderr.count(b"cannot write the log '/dev/full'")), (0, 1), done.stderr)

    def test_a_wrong_line_of_a_batch_affects_no_other_line(self):
        stdin = (b'one\n{"prompt": 3, "id": "b"}\n{broken\n'
                 b'{"prompt": "x", "tmp": 1, "id": [4, 1719923456.123]}\n' + b'w' * 9000 +
                 b'\ntwo\na\0b\n{"id prompt": 1, "prompt": "x"}\n')
        done = self.chat('--batch', '4', '--json', '-n', '4', stdin=stdin)
        self.assertEqual(done.returncode, 2, done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(['error' in a for a in answers], [False, True, True, True, True, False, True, True])
        self.assertEqual([a.get('id') for a in answers], [None, 'b', None, [4, 1719923456.123], None, None, None, None])
        for said in ('line 2: "prompt" is not a string',
                     "line 3: not JSON, column 2: string or '}' expected near 'broken'\n",
                     'line 4: unknown member "tmp"',
                     'line 5: the prompt has', 'line 7:', 'line 8: unknown member "id prompt"'):
            self.assertIn(said, done.stderr.decode())
        stdin = (b'\xef\xbb\xbf{"prompt": "x", "id": 1}\n {"prompt": "x", "id": 2}\n{"id": 3}\n'
                 b'{"prompt": " ", "id": 4}\n{"prompt": "x", "id": 5, "max_tokens": 2.5}\n'
                 b'{"prompt": "x", "id": 6, "seed": 1e17}\n')
        done = self.chat('--batch', '2', '--json', '-n', '2', stdin=stdin)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(a['id'], 'error' in a) for a in answers],
                         [(1, False), (2, False), (3, True), (4, True), (5, True), (6, True)])
        for said in ('line 3: the object has no "prompt"', 'line 5: "max_tokens" is not a whole number',
                     'line 6: "seed" is not a number from 0 to 9007199254740992'):
            self.assertIn(said, done.stderr.decode())
        self.refuses(5, '--batch', '4', '--system', '@' + self.path('missing'), stdin=b'x')
        self.refuses(2, '--batch', '4', stdin=b'\n')
        self.refuses(2, '--batch', '0', stdin=b'x')
        self.refuses(2, '--batch', '4', 'prompt', stdin=b'x')
        self.refuses(2, '--batch', '4', '--lines', stdin=b'x')

    def test_invalid_utf8_in_a_batch_is_a_warning_with_line_and_offset(self):
        warning = ('bitnet-chat: warning: {} is not valid UTF-8 at offset {}: replaced by U+FFFD\n'.format)
        said = (warning('the system message', 1) + warning('line 2', 2) + warning('line 3', 13)).encode()
        words = ('--batch', '2', '-n', '1', '-s', b'x\xff')
        stdin = b'one\nab\xffc\xff\n{"prompt": "a\xff"}\n'
        done = self.chat(*words, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, said))
        self.says('-q', *words, stdin=stdin)

    def test_a_template_that_leaves_out_the_lines_is_one_warning(self):
        template = '@' + self.write('static.jinja', 'static')
        done = self.chat('--batch', '2', '-n', '1', '--template', template, stdin=b'one\ntwo\nthree\n')
        self.assertEqual((done.returncode, done.stderr.decode()), (
            0, 'bitnet-chat: warning: line 1: the chat template leaves out your message, so the model does not see '
            'it\n'))
        self.says('-q', '--batch', '2', '-n', '1', '--template', template, stdin=b'one\n')

    def batch(self, *words):
        # Unbuffered, because communicate() does not return what readline() has read ahead.
        process = subprocess.Popen([PROGRAM, self.model, '--batch', '2', *words], env=self.env, bufsize=0,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def test_a_batch_answers_before_its_input_ends_and_stops_cleanly(self):
        process = self.batch('-n', '4', '--json')
        process.stdin.write(b'one\ntwo\n')
        process.stdin.flush()
        for line in (1, 2):
            self.assertEqual(json.loads(process.stdout.readline())['line'], line)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, b''))
        if err:  # empty if the end of the input was read before the signal
            self.assertEqual(err, b'bitnet-chat: stopped: no answer to the lines after line 2\n')

    def test_the_limit_of_a_line_does_not_count_the_lines_after_it(self):
        stdin = b'{' + b' ' * ((64 << 20) - 1025) + b'\n' + b'one\n' * 300
        done = self.chat('--batch', '4', '-n', '1', stdin=stdin)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rb'\A[^\n]*line 1: not JSON[^\n]*\n\Z')

    def test_a_line_that_is_too_long_fails_alone(self):
        done = self.chat('--batch', '1', '-n', '1', '--json', stdin=b'one\n' + b'x' * ((64 << 20) + 9) + b'\none\n')
        self.assertEqual(done.returncode, 2)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(a['line'], a.get('error')) for a in answers],
                         [(1, None), (2, 'longer than 67108864 bytes'), (3, None)])

    def test_finished_answers_are_written_after_an_error_of_the_input(self):
        ours, theirs = socket.socketpair()
        process = subprocess.Popen([PROGRAM, self.model, '--batch', '2', '-n', '400', '--json'], env=self.env,
                                   bufsize=0, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        ours.sendall(b'one\n{"prompt": 3}\n')
        self.assertIn(b'line 2:', process.stderr.readline())
        theirs.sendall(b'unread')  # a socket that is closed with unread data resets its peer
        theirs.close()
        ours.close()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 5, err)
        self.assertIn(b'cannot read standard input', err)
        self.assertEqual([(a['line'], 'error' in a) for a in map(json.loads, out.splitlines())][-1], (2, True))

    def test_an_answer_of_one_token_does_not_wait_for_more_input(self):
        process = self.batch('-n', '1', '--json')
        process.stdin.write(b'one\n')
        waiting, _, _ = select.select([process.stdout], [], [], 60)
        self.assertTrue(waiting)
        self.assertEqual(json.loads(process.stdout.readline())['line'], 1)

    def test_a_batch_that_waits_for_input_sleeps_after_a_resize(self):
        process = self.batch('-n', '2', '--json')
        process.stdin.write(b'one\n')
        self.assertEqual(json.loads(process.stdout.readline())['line'], 1)
        before = -1
        while before != (before := cpu_ticks(process.pid)):
            time.sleep(0.3)  # waiting threads spin for some time
        process.send_signal(signal.SIGWINCH)
        time.sleep(1)
        self.assertLess((cpu_ticks(process.pid) - before) / CPU_TICKS, 0.05)
        out, err = process.communicate(b'two\n', timeout=60)
        self.assertEqual((process.returncode, err), (0, b''))
        self.assertEqual(json.loads(out)['line'], 2)

    VARIES = ('reused_tokens', 'evaluated_tokens', 'prefill_s',
              'decode_s', 'prefill_tokens_per_s', 'decode_tokens_per_s', 'first_token_s',
              'token_gap_p50_s', 'token_gap_p95_s', 'token_gap_p99_s')

    def test_events_of_a_batch_come_in_the_order_of_the_lines(self):
        stdin = b'one\n{"prompt": "two", "id": "b"}\n{"prompt": 3}\n' + b'three\n' * 9
        runs = []
        for width in ('1', '3', '8'):
            done = self.chat('--batch', width, '--jsonl', '-n', '9', '--seed', '1', stdin=stdin)
            self.assertEqual(done.returncode, 2, done.stderr)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            for event in events:
                if event.get('completion_tokens', 0) > 1:
                    self.assertLess(0, event['token_gap_p50_s'])
                    self.assertLessEqual(event['token_gap_p50_s'], event['token_gap_p99_s'])
                for key in self.VARIES:
                    event.pop(key, None)
            runs.append(events)
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])
        self.assertEqual([e['line'] for e in runs[0]], sorted(e['line'] for e in runs[0]))
        for line in range(1, 13):
            events = [e for e in runs[0] if e['line'] == line]
            self.assertEqual([e['event'] for e in events], ['start'] + ['token'] * (len(events) - 2) + ['end'])
            self.assertEqual({e.get('id') for e in events}, {'b' if line == 2 else None})
            if line == 3:
                self.assertIn('error', events[-1])
            else:
                self.assertEqual(''.join(e['text'] for e in events[1:-1]), events[-1]['text'])

    # Without special tokens, which could end an answer. The events of 3000 tokens do not fit into a pipe, so an
    # answer of that length does not end before the test reads it.
    ENDLESS = ('-c', '4096', '--seed', '5', *(w for i in range(256, 262) for w in ('--logit-bias', f'{i}=-inf')))

    def test_the_oldest_line_of_a_batch_is_streamed(self):
        process = self.batch('--jsonl', '-n', '3000', *self.ENDLESS)
        process.stdin.write(b'a\nb\n')
        process.stdin.flush()
        seen = [json.loads(process.stdout.readline()) for _ in range(4)]
        self.assertEqual([e['event'] for e in seen], ['start', 'token', 'token', 'token'])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        ends = [e for e in map(json.loads, out.splitlines()) if e['event'] == 'end']
        self.assertEqual([(e['line'], e['finish']) for e in ends], [(1, 'interrupted'), (2, 'interrupted')])
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err.decode(), r'^bitnet-chat: warning: a context of 4096 tokens .*\n'
                                       r'bitnet-chat: stopped: no answer to lines 1 to 2 and to the lines after '
                                       r'line 2\n$')

    LONG = b'{"prompt": "long", "max_tokens": 3000}\n' + b'{"prompt": "x", "max_tokens": 2}\n' * 3

    def test_an_interrupted_batch_writes_finished_later_lines(self):
        process = self.batch('--jsonl', *self.ENDLESS)
        process.stdin.write(self.LONG)
        process.stdin.close()
        for _ in range(40):  # each line is a token of line 1; the other prompts are finished by then
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdin = None
        out, err = process.communicate(timeout=60)
        ends = [e for e in map(json.loads, out.splitlines()) if e['event'] == 'end']
        self.assertEqual([e['finish'] for e in ends], ['interrupted', 'length', 'length', 'length'])
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err.decode(), r'^bitnet-chat: warning: a context of 4096 tokens .*\n'
                                       r'bitnet-chat: stopped: no answer to line 1\n$')

    def test_an_interrupted_batch_of_texts_leaves_gaps_empty(self):
        process = self.batch(*self.ENDLESS)
        process.stdin.write(self.LONG)
        process.stdin.close()
        self.wait_for(lambda: catches(process.pid, signal.SIGINT))
        time.sleep(0.5)  # any number of prompts may be finished
        process.send_signal(signal.SIGINT)
        process.stdin = None
        out, err = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 130))
        if process.returncode == 130 and out:
            self.assertEqual(out[:2], b'\n\n')
            self.assertIn(b'no answer to line', err)

    @unittest.skipUnless(shutil.which('parallel'), 'GNU parallel is not installed')
    def test_gnu_parallel_shares_a_batch_between_processes(self):
        asked = [{'prompt': 'question %d' % i, 'id': i, 'seed': i, 'max_tokens': 6} for i in range(20)]
        stdin = '\n'.join(map(json.dumps, asked)).encode() + b'\n'
        words = ('--batch', '4', '--json', '-t', '1')
        alone = [json.loads(line) for line in self.says(*words, stdin=stdin).splitlines()]
        for how in (['-N', '5', '--keep-order'], ['--round-robin', '--line-buffer', '-N', '1']):
            command = ['parallel', '--will-cite', '--pipe', *how, '-j', '2', PROGRAM, self.model, *words]
            done = subprocess.run(command, env=self.env, input=stdin, capture_output=True, timeout=300)
            self.assertEqual((done.returncode, done.stderr), (0, b''))
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            if '--keep-order' in how:
                self.assertEqual([a['id'] for a in answers], list(range(20)))
            self.assertEqual({a['id']: a['text'] for a in answers}, {a['id']: a['text'] for a in alone})

    def test_a_repeated_token_is_reported_in_a_batch_too(self):
        words = ('--json', '--temp', '0', '--logit-bias', '97=9000')
        done = self.chat('--batch', '2', *words, stdin=b'one\n{"prompt": "two", "max_tokens": 5}\n')
        self.assertEqual([json.loads(line)['finish'] for line in done.stdout.splitlines()],
                         ['degenerate', 'length'])
        self.assertRegex(done.stderr.decode(), '^bitnet-chat: warning: line 1: output degenerated.*another seed')
        self.assertEqual(done.stderr.count(b'\n'), 1)
        alone = json.loads(self.chat(*words, stdin=b'one').stdout)
        self.assertEqual((alone['finish'], alone['completion_tokens']), ('degenerate', 200))

    def test_a_batch_gives_logprobs_and_stats(self):
        words = ('--json', '--logprobs', '2', '-n', '5', '--seed', '1')
        alone = json.loads(self.says(*words, stdin=b'one'))
        done = self.chat('--batch', '2', '--stats', *words, stdin=b'one\none\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            self.assertEqual(json.loads(line)['logprobs'], alone['logprobs'])
        self.assertRegex(done.stderr.decode(), r'^line 1: \[5 tok, .*seed 1\]\nline 2: \[')

    def test_an_answer_of_two_tokens_has_no_rate(self):
        for n in (1, 2, 3):
            turn = json.loads(self.says('--batch', '2', '--json', '-n', str(n), '--seed', '1', stdin=b'one\n'))
            self.assertEqual(turn['completion_tokens'], n)
            self.assertEqual(turn['decode_tokens_per_s'] > 0, n == 3)

    def test_progress_is_shown_at_a_terminal_unless_it_is_unwanted(self):
        words = (self.model, '--batch', '2', '-n', '200', '--seed', '1', '--no-check')
        stdin = b'prompt\n' * 120
        seen, left, output = self.progress_of(*words, stdin=stdin, env=self.env)
        self.assertRegex(seen, rb'loading')
        self.assertRegex(seen, rb'\d+( of 120)? done, 2 running, \d+ tokens')
        self.assertEqual((left, output), (b'', self.says(*words[1:], stdin=stdin)))
        for word in ('-q', '--plain'):
            self.assertEqual(self.progress_of(*words, word, stdin=b'prompt\n', env=self.env)[0], b'')

    def test_an_interrupted_batch_writes_complete_answers(self):
        process = self.batch('--json', '-n', '600', '--stop', 'no such text')
        process.stdin.write(b'prompt\n' * 200)
        process.stdin.flush()
        first = process.stdout.readline()
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        answers = [json.loads(line) for line in (first + out).splitlines()]
        self.assertEqual([a['line'] for a in answers], list(range(1, len(answers) + 1)))
        cut = [str(a['line']) for a in answers if a['finish'] == 'interrupted']
        self.assertLessEqual(len(cut), 2, answers)
        if cut:  # otherwise both answers had just ended
            self.assertRegex(err.decode(), 'no answer to lines? ' + cut[0])
        self.assertIn('the lines after line %d' % len(answers), err.decode())


if __name__ == '__main__':
    main()
