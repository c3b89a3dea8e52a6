#!/usr/bin/env python3
"""
test_demo.py CHAT MAKE_MODEL DEMO: the built-in model in the whole program. DEMO is the folder app/demo. Its
held-out questions are scored here, ten of each kind, and its texts about the program must match the program.
"""
import json
import os
import re
import subprocess
import sys

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main
from support.terminal_case import Terminal

DEMO = sys.argv[3]
# The check for nonsense judges this model. The built-in one has too few tokens that are English words.
TRAINED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data/trained.gguf')
del sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, DEMO)
import score  # noqa: E402 (needs the path above)


class Demo(ChatCase):
    def run_here(self, *args, stdin=b''):
        return subprocess.run([PROGRAM, *args], input=stdin, capture_output=True, env=self.env,
                              timeout=300, check=False)

    def plain(self, *args, stdin=b''):
        """Run without a model name and without files. Returns standard output and standard error."""
        done = self.run_here('--private', *args, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def test_runs_and_is_named_when_no_model_is_given(self):
        answer, said = self.plain(stdin=b'hello')
        self.assertIn('Hello!', answer)
        self.assertRegex(said, r'built-in demo model \(19\.\d million parameters\)\n')  # nobody can try a question

    def test_a_chat_at_a_terminal_suggests_a_question(self):
        terminal = Terminal([PROGRAM, '--private'], self.env)
        self.addCleanup(terminal.close)
        terminal.expect(rb"million parameters\): try 'what can you do\?'")

    def test_quiet_does_not_name_the_demo_model(self):
        self.assertEqual(self.plain('-q', stdin=b'hello')[1], '')

    def test_a_batch_names_the_demo_model_too(self):
        answers, said = self.plain('--batch', '2', stdin=b'hello\nhello\n')
        self.assertEqual(answers.count('Hello!'), 2)
        self.assertRegex(said, r"^bitnet-chat: built-in demo model \(19\.\d million parameters\)\n$")
        self.assertEqual(self.plain('--batch', '2', '-q', stdin=b'hello\n')[1], '')

    def test_a_wrong_layout_is_noticed(self):
        for words, stdin in ((('hello',), b''), (('--lines',), b'hello\nhello\n'), (('--batch', '2'), b'a\nb\nc\n')):
            for layout in 'abc':
                for more in ((), ('-q',), ('--no-check',)):
                    done = self.run_here('--private', '-n', '4', '--i2s-layout', layout, *more, TRAINED, *words,
                                         stdin=stdin)
                    is_noticed = layout != 'a' and not more
                    self.assertEqual(done.returncode, 0)
                    self.assertEqual(done.stderr.count(b'Expect nonsense'), is_noticed, done.stderr)
                    self.assertEqual(done.stderr.count(b'\n'), is_noticed, done.stderr)

    def test_the_check_does_not_change_an_answer(self):
        words = ('--private', '--lines', '--temp', '0.9', '--seed', '4', TRAINED)
        turns = b'My name is Anna.\nWhat is my name?\nSpell "bread".\n'
        self.assertEqual(self.run_here(*words, stdin=turns).stdout,
                         self.run_here(*words, '--no-check', stdin=turns).stdout)

    def test_a_misspelt_path_is_a_prompt_with_a_warning(self):
        done = self.run_here('--private', '-n', '1', 'models/missing.bin')
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"there is no file 'models/missing.bin'", done.stderr)
        self.assertEqual(self.run_here('models/missing.gguf').returncode, 3)

    def test_info_calls_it_built_in(self):
        self.assertIn('built in', self.plain('--info')[0])
        self.assertIs(json.loads(self.plain('--info', '--json')[0])['built_in'], True)

    def test_a_name_is_remembered_turns_later(self):
        turns = b'My name is Anna.\nWhat is 2 + 3?\nSpell "bread".\nWhat is the capital of Italy?\nWhat is my name?\n'
        answers = self.plain('--lines', '-q', stdin=turns)[0].split('\n\n')
        self.assertEqual([a.strip() for a in answers],
                         ['I will remember that. Your name is Anna.', '2 + 3 = 5.', 'b-r-e-a-d.',
                          'The capital of Italy is Rome.', 'Your name is Anna.'])

    def test_the_first_words_of_a_newcomer_get_a_sensible_answer(self):
        turns = {'hello, I am Ada': 'Your name is Ada.', 'My name is Adam': 'Your name is Adam.',
                 'What is seven plus five?': '7 + 5 = 12.', '2+2': '2 + 2 = 4.', 'hi': 'Hello!',
                 'where can I download a bigger model?': 'Download a GGUF file', 'why is the sky blue?': 'blue light',
                 'How do I save this chat?': '/save NAME', 'write code': 'I cannot write code.',
                 'sprichst du deutsch?': 'only English', 'thanks': 'You are welcome.'}
        for question, words in turns.items():
            self.assertIn(words, self.plain('-q', stdin=question.encode())[0])

    def test_threads_and_instruction_sets_give_the_same_answers(self):
        words = ('--lines', '-q', '--temp', '0.9', '--seed', '5')
        turns = b'I live in Oslo.\nWhat does /undo do?\nWhere do I live?\n'
        answers = {self.plain(*words, *more, stdin=turns)[0]
                   for more in ((), ('--threads', '1'), ('--isa', 'ref'), ('--ubatch', '3'))}
        self.assertEqual(len(answers), 1)

    def test_answers_held_out_questions(self):
        asked, right = score.score(PROGRAM, each=10, env=self.env)
        self.assertEqual(sum(asked.values()), 130)
        self.assertGreaterEqual(sum(right.values()), 129, right)  # the score of demo.gguf, the same on every machine

    def test_the_taught_options_and_commands_exist(self):
        with open(os.path.join(DEMO, 'topics.txt'), encoding='utf-8') as file:
            taught = file.read()
        options = set(re.findall(r'--[a-z][a-z0-9-]+', self.plain('--help', 'all')[0])) | {'--no-'}
        said = ''.join(self.plain('-i', stdin=b'/help\n'))
        commands = set(re.findall(r'^(?:bitnet-chat: )?/([a-z]+)', said, re.M)) - {'help COMMAND'}
        named = set(re.findall(r'^(--[a-z][a-z0-9-]+)|\| (--[a-z][a-z0-9-]+)', taught, re.M))
        self.assertEqual({a or b for a, b in named} - options, set())
        self.assertEqual(set(re.findall(r'^/([a-z]+)', taught, re.M)) ^ commands, set())


if __name__ == '__main__':
    main()
