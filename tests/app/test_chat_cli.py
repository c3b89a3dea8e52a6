#!/usr/bin/env python3
"""
test_chat_cli.py CHAT MAKE_MODEL: the program with its engine, on a tiny generated model.
"""
import json

from chat_case import ChatCase
from program_case import main


class Chat(ChatCase):
    def test_the_same_seed_gives_the_same_bytes(self):
        first = self.says('-n', '32', '--seed', '1', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--seed', '1', '--threads', '1', stdin=b'hello'), first)
        seeds = {self.says('-n', '32', '--seed', str(i), stdin=b'hello') for i in range(4)}
        self.assertGreater(len(seeds), 1)
        greedy = self.says('-n', '32', '--greedy', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--temp', '0', '--seed', '9', stdin=b'hello'), greedy)

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

    def test_what_is_no_model_is_exit_3(self):
        for path in self.models_that_do_not_load():
            done = self.chat('-p', 'x', model='--model=' + path)
            self.assertEqual((done.returncode, done.stdout), (3, b''), path)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)


if __name__ == '__main__':
    main()
