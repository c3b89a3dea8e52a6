#!/usr/bin/env python3
"""
test_full_context.py CHAT MAKE_MODEL: a chat whose context is full: how many tokens each turn evaluates, which turns
are dropped, and what the user reads about it. With a scripted generator; a token is a byte.
"""
import json
import random
import re

from support.chat_case import ChatCase
from support.program_case import main
from support.screen_case import ScreenCase
from support.terminal_case import PAINTERS, TerminalCase


class FullContext(ChatCase):
    def turns(self, *words, questions, code=0):
        """One conversation. Returns the JSON objects of its answers; self.notices is the standard error."""
        done = self.chat('--lines', '--json', *words, stdin=b'\n'.join(q.encode() for q in questions), timeout=240)
        self.notices = done.stderr.decode()
        self.assertEqual(done.returncode, code, self.notices)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_few_tokens_are_evaluated_over_400_turns(self):
        """Questions of 8 to 40 tokens with answers of 20 to 100, as in a chat about everyday things."""
        rng = random.Random(5)
        self.fake(*('a' * rng.randint(20, 100) for _ in range(64)))
        questions = ['q' * rng.randint(8, 40) for _ in range(400)]
        for n_ctx, most in ((4096, 0.08), (1024, 0.19)):
            turns = self.turns('--ctx', str(n_ctx), '--overflow', 'drop', '-s', 'Be brief.', questions=questions)
            self.assertEqual(len(turns), 400)
            mean = sum(turn['evaluated_tokens'] for turn in turns) / 400
            drops = [turn for turn in turns if turn['dropped_turns']]
            print(f'context {n_ctx}: {mean:.1f} tokens a turn, {100 * mean / n_ctx:.1f} %, {len(drops)} drops')
            self.assertLess(mean, most * n_ctx)
            self.assertEqual(self.notices.count('context: dropped'), len(drops))
            for turn in drops:
                self.assertLessEqual(turn['prompt_tokens'], 0.6 * n_ctx)
                self.assertGreater(turn['prompt_tokens'], 0.6 * n_ctx - 180)  # whole turns are dropped

    def test_the_part_that_stays_can_be_chosen(self):
        self.fake('a' * 50)
        for percent, least, most in ((30, 200, 300), (100, 800, 875)):
            turns = self.turns('--ctx', '1000', '--overflow', 'drop', '--overflow-to', str(percent),
                               questions=['q' * 20] * 30)
            drops = [turn['prompt_tokens'] for turn in turns if turn['dropped_turns']]
            self.assertTrue(drops and all(least < n <= most for n in drops), (percent, drops))
        self.assertIn('expected a whole number from 1 to 100', self.refuses(2, '--overflow-to', '0', '-p', 'x'))

    def context_after(self, *words):
        """(what the model reads, the notices) after a system message and 30 turns in a context of 600 tokens."""
        self.fake(*(f'answer {i} ' + 'a' * 30 for i in range(30)))
        lines = ['/system keep me', *(f'question {i}' for i in range(30)), '/context', '/history', '/dump']
        done = self.chat('-i', '-q', '--ctx', '600', *words, stdin='\n'.join(lines).encode())
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 0, text)
        return text[text.index('<|begin_of_text|>'):], text

    def test_the_system_message_always_stays(self):
        dump, text = self.context_after('--overflow', 'drop')
        self.assertIn('keep me', dump)
        self.assertNotIn('question 0\n', dump)
        self.assertNotIn('answer 0 ', dump)
        self.assertIn('question 29', dump)
        self.assertIn('1 (no longer in the context)> question 0', text)
        self.assertIn('when it is full: the oldest turns are dropped until 60 % are in use (/set overflow-to)', text)

    def test_keep_first_also_keeps_the_first_turn(self):
        dump, text = self.context_after('--overflow', 'keep-first')
        for part in ('keep me', 'question 0', 'answer 0 ', 'question 29'):
            self.assertIn(part, dump)
        self.assertNotIn('answer 1 ', dump)
        self.assertIn('1> question 0', text)
        self.assertIn('2 (no longer in the context)> question 1', text)
        self.assertIn('the oldest turns except the first are dropped', text)

    def test_keep_first_evaluates_the_first_turn_once(self):
        self.fake('a' * 40)
        questions = ['first ' + 'x' * 100] + [f'question {i} ' + 'q' * 9 for i in range(30)]
        turns = self.turns('--ctx', '600', '--overflow', 'keep-first', questions=questions)
        drops = [turn for turn in turns if turn['dropped_turns']]
        self.assertTrue(drops)
        for turn in drops:
            self.assertGreater(turn['reused_tokens'], 146)  # the first question and its answer
            self.assertRegex(self.notices, rf're-reading {turn["evaluated_tokens"]} tok\n')

    def test_a_message_that_is_too_long_does_not_suggest_forget(self):
        """Whatever the policy is, removing older turns cannot make room for it."""
        self.fake('ok', n_ctx=400)
        for policy in ('drop', 'keep-first', 'stop'):
            done = self.chat('-i', '--overflow', policy, stdin=b'one\ntwo\n' + b'x' * 500)
            text = done.stderr.decode()
            self.assertEqual(done.returncode, 4, text)
            self.assertRegex(text, r'the prompt has 5\d\d tokens, and 50 are reserved for the answer, '
                                   r'but the context has only 400')
            self.assertNotIn('forget', text)
            self.assertEqual(done.stdout, b'ok\n\nok\n')

    def test_a_system_message_that_is_too_long_is_refused(self):
        self.fake('ok', n_ctx=400)
        path = self.write('long.txt', 's' * 500)
        done = self.chat('-i', '--keep-going', stdin=f'/system be brief\n/system @{path}\n/system\none'.encode())
        text = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (4, b'ok\n'), text)
        self.assertRegex(text, r'the system message with its template has 5\d\d tokens')
        self.assertIn('be brief', text)  # stays

    def test_the_error_of_a_long_system_message_names_it(self):
        """A message that is too long beside a short system message is still the reason itself."""
        self.fake('ok', n_ctx=400)
        for system, message, said in (('s' * 500, 'one', 'the system message with its template has 5'),
                                      ('be brief', 'x' * 500, 'the prompt has 5')):
            self.assertIn(said, self.refuses(4, '-s', system, '-p', message))

    def test_forget_says_that_dropped_turns_free_no_space(self):
        self.fake('a' * 40, n_ctx=600)

        def said(*commands):
            lines = [*(f'question {i:2}' for i in range(12)), *commands, '/context']
            text = self.chat('-i', '--overflow', 'drop', stdin='\n'.join(lines).encode()).stderr.decode()
            return text, int(re.search(r'in all +(\d+) tok', text)[1])
        text, n_used = said()
        n_dropped = int(re.search(r'dropped so far: (\d+)', text)[1])
        self.assertGreater(n_dropped, 2)
        for n in (1, n_dropped):
            text, n_left = said(f'/forget {n}')
            self.assertEqual(n_left, n_used)
            self.assertIn(f'; /forget {n_dropped - n + 1} also removes the oldest turn that is in it', text)
        text, n_left = said('/forget', f'/forget {n_dropped}')  # as the first notice suggests
        self.assertLess(n_left, n_used)
        self.assertEqual(text.count('no space was freed'), 1)

    def test_undo_of_a_large_message_brings_the_dropped_turns_back(self):
        self.fake('one', 'two', 'three', 'four')
        for lines in (('/undo', 'ccc', '/dump'), ('/edit 3', 'ccc', '/dump')):
            done = self.chat('-i', '--ctx', '600', '--overflow', 'drop',
                             stdin='\n'.join(('aaa', 'bbb', 'x' * 480, *lines)).encode())
            text = done.stderr.decode()
            self.assertEqual(done.returncode, 0, text)
            self.assertIn('context: dropped 2 oldest turns', text)
            dump = text[text.index('<|begin_of_text|>'):]
            for word in ('aaa', 'bbb', 'ccc'):
                self.assertIn(word, dump)

    def test_a_tiny_context_needs_no_tokens_for_the_answer(self):
        self.fake('ok', n_ctx=5)
        self.assertRegex(self.refuses(4, '-p', 'a long question'),
                         r': the prompt has \d+ tokens, but the context has only 5\n$')

    def test_retry_can_choose_what_happens_when_the_context_is_full(self):
        """The last prompt leaves room for an answer of 15 tokens, but not for one of 50."""
        self.fake('a' * 60, n_ctx=600)

        def retry(policy, settings):
            lines = [*(f'question {i:2}' for i in range(13)), f'/retry max-tokens=50 {settings}', '/context']
            done = self.chat('-i', '-n', '15', '--overflow', policy, stdin='\n'.join(lines).encode())
            return done.returncode, done.stderr.decode(), done.stdout.decode().split()[-1]
        for policy, settings in (('drop', 'overflow=stop'), ('stop', '')):
            code, text, answer = retry(policy, settings)
            self.assertEqual(code, 4, text)
            self.assertIn('50 are reserved for the answer, but the context has only 600', text)
            self.assertEqual(answer, 'a' * 15)
        for policy, settings, n_dropped in (('stop', 'overflow=drop', 5), ('drop', '', 5),
                                            ('drop', 'overflow-to=20', 10)):
            code, text, answer = retry(policy, settings)
            self.assertEqual(code, 0, text)
            self.assertIn(f'dropped {n_dropped} oldest turns', text)
            self.assertEqual(answer, 'a' * 50)

    def test_undo_of_a_retry_brings_the_dropped_turns_back(self):
        self.fake('a' * 60, n_ctx=600)
        lines = [*(f'question # {i:2}' for i in range(12)), '/retry max-tokens=75', '/undo', '/history']
        done = self.chat('-i', '-n', '15', '--overflow', 'drop', stdin='\n'.join(lines).encode())
        text = done.stderr.decode()
        self.assertRegex(text, r'context: dropped \d oldest turns')
        self.assertIn('the last /retry is undone; 12 turns left', text)
        self.assertNotIn('no longer in the context', text)

    def test_after_undo_context_says_that_the_next_message_drops_turns_again(self):
        """/undo of a large message brings the dropped turns back, but they do not fit with any message."""
        self.fake('a' * 80, 'b' * 190, 'c' * 190, 'd', 'e')
        lines = ('one', 'two', 'three', 'x' * 200, '/undo', '/context', '/history', 'five')
        done = self.chat('-i', '--ctx', '600', '--overflow', 'drop', stdin='\n'.join(lines).encode())
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 0, text)
        drops = [int(n) for n in re.findall(r'context: dropped (\d) oldest', text)]
        said = int(re.search(r'(?m)^the next message will drop: (\d)$', text)[1])
        self.assertEqual((len(drops), drops[1]), (2, said))
        parts = [int(n) for n in re.findall(r'(?m)^(?:system|you|answers|template) +(\d+) tok$', text)]
        n_all, n_free = map(int, re.search(r'in all +(\d+) tok of 600, (\d+) free', text).groups())
        self.assertEqual((sum(parts), n_free), (n_all, max(600 - n_all, 0)))
        self.assertEqual(text.count('(no longer in the context)'), 0)
        self.assertEqual(text.count('the next message will drop'), 1)  # no notice in a script

    def test_context_says_how_many_turns_of_a_loaded_chat_the_next_message_drops(self):
        path = self.path('long.json')
        self.fake('a' * 80)
        self.chat('-i', '--ctx', '4000', '--session', path, stdin=b'q\n' * 20)
        for policy in ('drop', 'keep-first', 'stop'):
            done = self.chat('-i', '--ctx', '600', '--overflow', policy,
                             stdin=f'x\n/load {path}\n/context\n'.encode())
            text = done.stderr.decode()
            n_tokens = re.search(r'20 turns loaded, (\d+) tok', text)[1]
            self.assertGreater(int(n_tokens), 600)
            self.assertRegex(text, f'in all +{n_tokens} tok of 600, 0 free')
            self.assertEqual('the next message will drop: 1' in text, policy != 'stop', text)


class FullTerminal(TerminalCase):
    def test_a_system_message_that_is_too_long_is_a_warning_of_the_start(self):
        self.fake('ok', n_ctx=400)
        for words in PAINTERS:
            terminal = self.ready('-s', 's' * 500, *words)
            terminal.expect(rb'system\s+message(?s:.*)400;\s+/system\s+off\s+removes\s+it')
            self.says_in(terminal, b'one\r', rb'shorten\s+the\s+system\s+message')
            self.says_in(terminal, b'\x15/system off\r', b'removed')
            self.says_in(terminal, b'two\r', rb'\[\d+ tok')
            self.leave(terminal)

    def test_the_status_row_counts_a_loaded_chat(self):
        path = self.path('loaded.json')
        self.fake('a' * 100)
        self.chat('--session', path, '-i', stdin=b'q\nq\nq\n')
        for n_ctx, shown, drops in ((1000, range(301, 600), False), (300, [300], True)):
            self.fake(n_ctx=n_ctx)
            terminal = self.open('--load', path, '--tui')
            terminal.expect(rb'ctx [1-9]\d+/%d' % n_ctx)
            terminal.settle()
            n_used = max(map(int, re.findall(rb'ctx (\d+)/', terminal.seen)))
            self.assertIn(n_used, shown)
            self.assertEqual(bool(re.search(rb'next\s+message\s+will\s+drop', terminal.seen)), drops)
            self.leave(terminal)

    def test_one_notice_stands_for_many_turns(self):
        for words in PAINTERS:
            self.fake('a' * 40, n_ctx=600)
            terminal = self.ready(*words)
            for _ in range(12):
                self.says_in(terminal, b'q' * 20 + b'\r')
            self.says_in(terminal, b'/history\r', rb'no longer')
            self.leave(terminal)
            notices = set(re.findall(rb'dropped \d+ oldest turns? \(\d+', terminal.seen))
            self.assertEqual(len(notices), 1, notices)

    def test_a_message_that_is_too_long_returns_with_advice(self):
        for words in PAINTERS:
            self.fake('ok', n_ctx=400)
            terminal = self.ready(*words)
            self.says_in(terminal, b'one\r')
            start = len(terminal.seen)
            self.says_in(terminal, b'x' * 500 + b'\r', rb'shorten(?s:.*)--ctx')
            self.assertNotIn(b'/forget', terminal.seen[start:])
            self.says_in(terminal, b'\x15short\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['one', 'short'])


class FullScreen(ScreenCase):
    def test_a_message_that_waited_reports_a_long_system_message_once(self):
        for words in PAINTERS:
            self.fake('ok', n_ctx=400, load_until=self.gate())
            screen = self.open(70, 24, '-s', 's' * 500, *words)
            screen.send('-l', 'one')
            screen.send('Enter')
            screen.expect('your message waits')
            self.write('gate', '')
            screen.expect(r'shorten\s+the\s+system\s+message')
            screen.settle()
            self.assertEqual(len(re.findall(r'the\s+system\s+message\s+with\s+its\s+template', screen.text())), 1)
            screen.close()


if __name__ == '__main__':
    main()
