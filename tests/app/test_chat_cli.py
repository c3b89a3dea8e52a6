#!/usr/bin/env python3
"""
test_chat_cli.py CHAT MAKE_MODEL: the program with its engine, on a tiny generated model.
"""
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

from chat_case import ChatCase
from program_case import PROGRAM, main


class Chat(ChatCase):
    def test_the_same_seed_gives_the_same_bytes(self):
        first = self.says('-n', '32', '--seed', '1', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--seed', '1', '--threads', '1', stdin=b'hello'), first)
        self.assertEqual(self.says('-n', '32', '--seed', '1', '-t', '1', '--pin', stdin=b'hello'), first)
        seeds = {self.says('-n', '32', '--seed', str(i), stdin=b'hello') for i in range(4)}
        self.assertGreater(len(seeds), 1)
        greedy = self.says('-n', '32', '--greedy', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--temp', '0', '--seed', '9', stdin=b'hello'), greedy)

    def test_speculation_changes_no_byte(self):
        runs = {self.says('-n', '40', '--seed', '1', '--spec', mode, stdin=b'ababababab')
                for mode in ('off', 'on', 'auto')}
        self.assertEqual(len(runs), 1)

    def test_explain_says_what_runs_how_and_leaves(self):
        text = self.says('--explain', '-t', '1', '--ubatch', '64', 'never asked').decode()
        self.assertRegex(text, r'(?s)^prompt\ntokens +64 at once, 64 at most\nthreads +1 of 1, as asked.*'
                               r'\n\nanswer\ntokens +1 at once, 64 at most\n.*\nhead +1 row, .* MB\n$')
        self.refuses(2, '--explain', '--json')

    def test_a_model_file_cut_while_in_use_is_said(self):
        model = self.path('cut.gguf')
        shutil.copy(self.model, model)
        process = subprocess.Popen([PROGRAM, model, '--lines', '--json', '-n', '4'], env=self.env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        process.stdin.write(b'one\n')
        process.stdin.flush()
        process.stdout.readline()
        os.truncate(model, 0)
        errors = process.communicate(b'two\n', timeout=60)[1]
        self.assertEqual(process.returncode, -signal.SIGBUS)
        self.assertRegex(errors, rb'^bitnet-chat: the model file was cut short, .*in use\n$')

    def test_a_second_turn_reads_only_its_new_tokens(self):
        lines = self.says('--lines', '--json', '-n', '20', '--seed', '3', stdin=b'one\ntwo\nthree\n')
        turns = [json.loads(line) for line in lines.splitlines()]
        for before, turn in zip(turns, turns[1:]):
            said = before['prompt_tokens'] + before['completion_tokens']
            # the last token of an answer that was cut was never read
            self.assertGreaterEqual(turn['reused_tokens'], said - 1)
            self.assertEqual(turn['prompt_tokens'], turn['reused_tokens'] + turn['evaluated_tokens'])

    def test_a_conversation_taken_up_answers_as_if_it_had_gone_on(self):
        both = self.says('--lines', '-n', '20', '--seed', '3', stdin=b'one\ntwo\n')
        session = self.path('resumed.json')
        words = ('-n', '20', '--seed', '3', '--session', session)
        halves = self.says(*words, stdin=b'one'), self.says(*words, stdin=b'two')
        self.assertEqual(halves[0] + b'\n' + halves[1], both)

    def test_retry_with_the_same_seed_is_the_same_answer(self):
        lines = self.says('-i', '--json', '-n', '20', '--seed', '3', stdin=b'one\n/retry\n')
        first, again = (json.loads(line) for line in lines.splitlines())
        self.assertEqual(first['text'], again['text'])
        self.assertGreater(again['reused_tokens'], 0)

    def test_logprobs_add_up_and_name_the_greedy_token_first(self):
        turn = json.loads(self.says('--json', '--logprobs', '3', '--greedy', '-n', '8', stdin=b'x'))
        for token in turn['logprobs']:
            self.assertEqual(token['top'][0]['id'], token['id'])
            self.assertLessEqual(token['logprob'], 0)

    def snapshots(self):
        return glob.glob(os.path.join(self.home.name, '.cache/bitnet-chat/kv/*'))

    def kept(self, *words):
        """A session of one answer with its snapshot; what the program said of it."""
        session = os.path.join(self.home.name, 'kept.json')
        done = self.chat('-n', '20', '--seed', '3', '--session', session, '--snapshot', *words,
                         stdin=b'one')
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.copy(session, session + '.first')
        return session, done.stderr.decode()

    def resume(self, session, *words):
        """The next answer as JSON, and what was said beside it. The session is put back."""
        done = self.chat('-n', '20', '--seed', '3', '--json', '--session', session, *words, stdin=b'two')
        shutil.copy(session + '.first', session)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr.decode()

    def test_a_snapshot_is_taken_up_to_the_same_bytes(self):
        session, said = self.kept()
        self.assertRegex(said, r'writing a snapshot of about [0-9.]+ MB to .*\.kv\n.*snapshot written: \d+ tok')
        [path] = self.snapshots()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        fast, said = self.resume(session)
        self.assertRegex(said, r'snapshot taken up: \d+ tok')
        self.assertGreater(fast['reused_tokens'], 20)
        os.unlink(path)
        slow, said = self.resume(session)
        self.assertEqual((slow['reused_tokens'], said), (0, ''))
        self.assertEqual(slow['text'], fast['text'])
        self.assertEqual(slow['prompt_tokens'], fast['prompt_tokens'])

    def test_a_snapshot_that_does_not_fit_is_told_and_not_used(self):
        session, _ = self.kept()
        [path] = self.snapshots()
        with open(path, 'rb') as file:
            whole = file.read()
        wanted = self.resume(session)[0]['text']
        for name, changed, reason in (
                ('mark', b'x' + whole[1:], 'no snapshot of this version'),
                ('model', whole[:8] + b'xx' + whole[10:], "another model's"),
                ('version', whole[:40] + b'gpu' + whole[43:],
                 'KV cache is of type gpu-f16-1, cpu-f16-1 is needed'),
                ('hostile version', whole[:40] + b'\x1b[2J' + whole[44:], 'is of type unknown'),
                ('count', whole[:72] + b'\xff' * 8 + whole[80:], 'tokens, the conversation only'),
                ('ids', whole[:80] + b'\x07\0\0\0' + whole[84:], 'at token 0'),
                ('ids below 0', whole[:80] + b'\xff' * 4 + whole[84:], 'at token 0'),
                ('cache', whole[:400] + bytes([whole[400] ^ 1]) + whole[401:], 'damaged'),
                ('short', whole[:-1], 'damaged'), ('head', whole[:30], 'damaged'),
                ('empty', b'', 'damaged'), ('long', whole + b'x', 'damaged')):
            with open(path, 'wb') as file:
                file.write(changed)
            turn, said = self.resume(session)
            self.assertIn(reason, said, name)
            self.assertIn('the conversation is read again', said, name)
            self.assertEqual((turn['reused_tokens'], turn['text']), (0, wanted), name)

    def test_a_snapshot_of_another_kind_of_cache_is_not_used(self):
        session, _ = self.kept('--kv', 'q8')
        turn, said = self.resume(session)
        self.assertIn('KV cache is of type cpu-q8-1, cpu-f16-1 is needed (--kv', said)
        self.assertEqual(turn['reused_tokens'], 0)
        turn, said = self.resume(session, '--kv', 'q8')
        self.assertRegex(said, r'snapshot taken up: \d+ tok')
        self.assertGreater(turn['reused_tokens'], 20)

    def test_approximations_are_shown_where_the_model_is(self):
        done = self.chat('-i', '-n', '8', '--kv', 'q8', '--head', 'q8', stdin=b'a\n/info\n')
        said = (done.stdout + done.stderr).decode(errors='replace')
        self.assertIn('head at 8 bits, KV cache at 8 bits', said)
        self.assertRegex(said, r'context .* bytes a token \(q8\)')

    def test_a_snapshot_of_other_weights_of_the_file_is_not_used(self):
        session, _ = self.kept()
        turn, said = self.resume(session, '--i2s-layout', 'c')
        self.assertIn('another model or I2_S layout; the conversation is read again', said)
        self.assertEqual(turn['reused_tokens'], 0)

    def test_cut_and_hostile_snapshots_never_break_an_answer(self):
        session, _ = self.kept()
        [path] = self.snapshots()
        with open(path, 'rb') as file:
            whole = file.read()
        wanted = self.resume(session)[0]['text']
        for i in range(24):
            at = (i * 7919) % 400 if i % 2 else len(whole) * i // 24
            with open(path, 'wb') as file:
                file.write(whole[:at] + (b'\xff' * 16 + whole[at + 16:] if i % 3 else b''))
            turn, said = self.resume(session)
            self.assertEqual(turn['text'], wanted, (i, at, said))

    def test_an_edited_conversation_leaves_its_snapshot_alone(self):
        session, _ = self.kept('--system', 'x')
        with open(session + '.first', encoding='utf-8') as file:
            kept = json.load(file)
        kept['messages'][1]['content'] = 'other'
        for path in (session, session + '.first'):
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(kept, file)
        turn, said = self.resume(session)
        self.assertRegex(said, 'the conversation differs from its snapshot at token [1-9]')
        self.assertEqual(turn['reused_tokens'], 0)

    def test_nothing_is_kept_unless_it_is_asked_for_or_in_private(self):
        self.kept('--no-snapshot')
        self.kept('--private')
        self.assertEqual(self.snapshots(), [])
        done = self.chat('-i', '-n', '8', stdin=b'one\n/set snapshot on\n/save trip\n/clear\n/load trip\ntwo\n')
        self.assertEqual((done.returncode, len(self.snapshots())), (0, 1), done.stderr)

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
        for ctx, wanted in (('64', r'^bitnet-chat: 16 prompts at once\n$'),
                            ('4000000', r'^bitnet-chat: warning: a context of 4000000 tokens .*\n'
                                        r'bitnet-chat: ([1-9]|1[0-6]) prompts? at once\n$')):
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

    def test_a_context_beyond_the_training_is_warned_of(self):
        for words in ([], ['--batch', '2']):
            done = self.chat('-n', '2', '-c', '300', *words, stdin=b'x')
            self.assertEqual((done.returncode, done.stderr), (0, b'bitnet-chat: warning: a context of 300 tokens is '
                                                             b'more than the 256 the model was trained with\n'))
            self.says('-n', '2', '-c', '256', *words, stdin=b'x')
            self.says('-n', '2', '-c', '300', '-q', *words, stdin=b'x')

    def test_a_line_that_is_wrong_costs_no_other_line(self):
        stdin = b'one\n{"prompt": 3}\n{broken\n{"prompt": "x", "tmp": 1}\n' + b'w' * 9000 + b'\ntwo\na\0b\n'
        done = self.chat('--batch', '4', '--json', '-n', '4', stdin=stdin)
        self.assertEqual(done.returncode, 2, done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(['error' in a for a in answers], [False, True, True, True, True, False, True])
        for said in ('line 2: "prompt" is no text', 'line 3: not JSON', 'line 4: unknown member "tmp"',
                     'line 5: the prompt takes', 'line 7:'):
            self.assertIn(said, done.stderr.decode())
        self.refuses(2, '--batch', '4', stdin=b'\n')
        self.refuses(2, '--batch', '0', stdin=b'x')
        self.refuses(2, '--batch', '4', 'prompt', stdin=b'x')
        self.refuses(2, '--batch', '4', '--lines', stdin=b'x')

    def batch(self, *words):
        # Unbuffered: communicate() does not see what readline() has read ahead.
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
        out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, b''))
        if err: # the end of the input may be seen first
            self.assertEqual(err, b'bitnet-chat: stopped: no answer to what follows line 2\n')

    def test_a_batch_that_waits_for_input_sleeps_after_a_resize(self):
        process = self.batch('-n', '2', '--json')
        process.stdin.write(b'one\n')
        self.assertEqual(json.loads(process.stdout.readline())['line'], 1)
        before = -1
        while before != (before := self.cpu_seconds(process.pid)):
            time.sleep(0.3)  # threads that wait for work spin for a while
        process.send_signal(signal.SIGWINCH)
        time.sleep(1)
        self.assertLess(self.cpu_seconds(process.pid) - before, 0.05)
        out, err = process.communicate(b'two\n', timeout=20)
        self.assertEqual((process.returncode, err), (0, b''))
        self.assertEqual(json.loads(out)['line'], 2)

    def cpu_seconds(self, pid):
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            user, system = file.read().rsplit(')', 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')

    VARIES = ('reused_tokens', 'evaluated_tokens', 'prefill_s',
              'decode_s', 'prefill_tokens_per_s', 'decode_tokens_per_s', 'first_token_s')

    def test_events_of_a_batch_come_in_the_order_of_the_lines(self):
        stdin = b'one\n{"prompt": "two", "id": "b"}\n{"prompt": 3}\n' + b'three\n' * 9
        runs = []
        for width in ('1', '3', '8'):
            done = self.chat('--batch', width, '--jsonl', '-n', '9', '--seed', '1', stdin=stdin)
            self.assertEqual(done.returncode, 2, done.stderr)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            for event in events:
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

    def test_the_oldest_line_of_a_batch_is_heard_while_it_is_answered(self):
        process = self.batch('--jsonl', '-n', '600', '--stop', 'no such text', '--temp', '0', '--logit-bias',
                             '2=-inf')
        process.stdin.write(b'a\nb\n')
        process.stdin.flush()
        seen = [json.loads(process.stdout.readline()) for _ in range(4)]
        self.assertEqual([e['event'] for e in seen], ['start', 'token', 'token', 'token'])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        ends = [e for e in map(json.loads, out.splitlines()) if e['event'] == 'end']
        self.assertEqual([(e['line'], e['finish']) for e in ends], [(1, 'interrupted'), (2, 'interrupted')])
        self.assertEqual((process.returncode, err), (130, b'bitnet-chat: stopped: no answer to lines 1 to 2 and '
                                                    b'to what follows line 2\n'))

    LONG = b'{"prompt": "long", "max_tokens": 3000}\n' + b'{"prompt": "x", "max_tokens": 2}\n' * 3

    def test_an_interrupted_batch_writes_what_is_done_behind_a_gap(self):
        process = self.batch('-c', '4096', '--jsonl', '--temp', '0', '--logit-bias', '2=-inf')
        process.stdin.write(self.LONG)
        process.stdin.close()
        for _ in range(40): # a token of line 1 each: the others are done by then
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdin = None
        out, err = process.communicate(timeout=20)
        ends = [e for e in map(json.loads, out.splitlines()) if e['event'] == 'end']
        self.assertEqual([e['finish'] for e in ends], ['interrupted', 'length', 'length', 'length'])
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err.decode(), r'^bitnet-chat: warning: a context of 4096 tokens .*\n'
                                       r'bitnet-chat: stopped: no answer to line 1\n$')

    def test_an_interrupted_batch_of_texts_leaves_gaps_empty(self):
        process = self.batch('-c', '4096', '--temp', '0', '--logit-bias', '2=-inf')
        process.stdin.write(self.LONG)
        process.stdin.close()
        time.sleep(0.5) # some of it may be done by now, or nothing
        process.send_signal(signal.SIGINT)
        process.stdin = None
        out, err = process.communicate(timeout=20)
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
            done = subprocess.run(command, env=self.env, input=stdin, capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b''))
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            if '--keep-order' in how:
                self.assertEqual([a['id'] for a in answers], list(range(20)))
            self.assertEqual({a['id']: a['text'] for a in answers}, {a['id']: a['text'] for a in alone})

    def test_a_token_that_repeats_for_ever_is_told_in_a_batch_too(self):
        words = ('--json', '--temp', '0', '--logit-bias', '97=9000')
        done = self.chat('--batch', '2', *words, stdin=b'one\n{"prompt": "two", "max_tokens": 5}\n')
        self.assertEqual([json.loads(line)['finish'] for line in done.stdout.splitlines()],
                         ['degenerate', 'length'])
        self.assertRegex(done.stderr.decode(), '^bitnet-chat: warning: line 1: output degenerated.*another seed')
        self.assertEqual(done.stderr.count(b'\n'), 1)
        alone = json.loads(self.chat(*words, stdin=b'one').stdout)
        self.assertEqual((alone['finish'], alone['completion_tokens']), ('degenerate', 200))

    def test_the_seed_that_is_shown_gives_the_same_answer_again(self):
        done = self.chat('-n', '30', '--stats', stdin=b'one')
        seed = done.stderr.decode().rsplit('seed ', 1)[1].rstrip(']\n')
        self.assertEqual(self.says('-n', '30', '--seed', seed, stdin=b'one'), done.stdout)

    def test_a_batch_gives_logprobs_and_stats(self):
        words = ('--json', '--logprobs', '2', '-n', '5', '--seed', '1')
        alone = json.loads(self.says(*words, stdin=b'one'))
        done = self.chat('--batch', '2', '--stats', *words, stdin=b'one\none\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            self.assertEqual(json.loads(line)['logprobs'], alone['logprobs'])
        self.assertRegex(done.stderr.decode(), r'^line 1: \[5 tok, .*seed 1\]\nline 2: \[')

    def test_an_interrupted_batch_leaves_whole_answers(self):
        process = self.batch('--json', '-n', '600', '--stop', 'no such text')
        process.stdin.write(b'prompt\n' * 200)
        process.stdin.flush()
        first = process.stdout.readline()
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 143)
        answers = [json.loads(line) for line in (first + out).splitlines()]
        self.assertEqual([a['line'] for a in answers], list(range(1, len(answers) + 1)))
        cut = [str(a['line']) for a in answers if a['finish'] == 'interrupted']
        self.assertLessEqual(len(cut), 2, answers)
        if cut:  # else both had just ended
            self.assertRegex(err.decode(), 'no answer to lines? ' + cut[0])
        self.assertIn('what follows line %d' % len(answers), err.decode())

    def test_what_is_no_model_is_exit_3(self):
        for path in self.models_that_do_not_load():
            done = self.chat('-p', 'x', model='--model=' + path)
            self.assertEqual((done.returncode, done.stdout), (3, b''), path)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)


if __name__ == '__main__':
    main()
