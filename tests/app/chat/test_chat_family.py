#!/usr/bin/env python3
"""
test_chat_family.py CHAT MAKE_MODEL: settings that follow from the family of the model. The models are generated, with
the architecture of the small Bonsai models or another one.
"""
import json
import os
import re

from support.program_case import PROGRAM, ProgramCase, main, run

FAMILY = {'temp': (0.5, 'family'), 'top-k': (20, 'family'), 'top-p': (0.85, 'family'), 'min-p': (0, 'family')}
GENERAL = {'temp': (0.7, 'default'), 'top-k': (40, 'default'), 'top-p': (0.95, 'default'), 'min-p': (0.05, 'default')}


class FamilyCase(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bonsai = cls.make('bonsai.gguf', '--preset', 'qwen3-tiny')
        cls.config = cls.write('config', '')

    def chat(self, *args, model=None, stdin=b''):
        """Run the chat without the files of the user. Returns standard output and standard error."""
        env = {**os.environ, 'HOME': self.folder.name, 'BITNET_CHAT_CONFIG': self.config}
        done = run([PROGRAM, '-m', model or self.bonsai, '--private', '--threads', '1', *args], stdin,
                   capture_output=True, env=env, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()


class Sampling(FamilyCase):
    def sampling(self, *args, model=None):
        sheet = json.loads(self.chat('--info', '--json', *args, model=model)[0])
        return {name: (round(one['value'], 6), one['source']) for name, one in sheet['sampling'].items()}

    def test_a_file_without_values_gets_those_of_its_family(self):
        self.assertEqual(self.sampling(), FAMILY)
        self.assertEqual(self.sampling(model=self.model), GENERAL)
        self.assertIn('temp 0.5 (family), top-k 20 (family), top-p 0.85 (family), min-p 0 (family)',
                      self.chat('--info')[0])

    def test_the_27b_models_have_values_of_their_own(self):
        hybrid = self.make('hybrid.gguf', '--preset', 'qwen35-tiny')
        self.assertEqual(self.sampling(model=hybrid),
                         {'temp': (0.7, 'family'), 'top-k': (20, 'family'), 'top-p': (0.95, 'family'),
                          'min-p': (0, 'family')})
        sheet = json.loads(self.chat('--info', '--json', model=hybrid)[0])
        self.assertEqual((sheet['chat_bytes'], sheet['state_bytes'], sheet['kv_bytes_per_token']),
                         (430080, 215040, 512))

    def test_flags_and_the_configuration_win(self):
        self.assertEqual(self.sampling('--temp', '0.9'), {**FAMILY, 'temp': (0.9, 'flag')})
        self.write('config', 'top-k = 7\n')
        try:
            self.assertEqual(self.sampling(), {**FAMILY, 'top-k': (7, 'config')})
        finally:
            self.write('config', '')

    def test_set_default_restores_the_value_of_the_family(self):
        _, text = self.chat('-i', '--temp', '1.5', stdin=b'/set temp 0.9\n/set temp default\n/set temp\n/info\n')
        self.assertIn('temp = 0.9\ntemp = 0.5\ntemp = 0.5 (family)\n', text)
        self.assertIn('sampling    temp 0.5 (family), top-k 20 (family)', text)

    def test_an_answer_uses_the_values_of_the_family(self):
        args = ('--json', '--seed', '3', '-n', '8', '-p', 'a')
        given = ('--temp', '0.5', '--top-k', '20', '--top-p', '0.85', '--min-p', '0')
        answers = [json.loads(self.chat(*args, *more)[0]) for more in ((), given)]
        self.assertEqual(answers[0]['text'], answers[1]['text'])
        self.assertEqual(answers[0]['settings'], answers[1]['settings'])


class Thinking(FamilyCase):
    TEMPLATE = ('{{ "state " }}{% if enable_thinking is defined %}{{ enable_thinking }}{% else %}undefined{% endif %}'
                '{% for m in messages %}{{ " " + m.content }}{% endfor %}')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.template = '@' + cls.write('think.jinja', cls.TEMPLATE)

    def state(self, *args, model=None, commands='/dump'):
        _, text = self.chat('-i', '--template', self.template, *args, model=model, stdin=commands.encode() + b'\n')
        return re.findall(r'state (\w+)', text)

    def test_auto_follows_the_family(self):
        self.assertEqual(self.state(), ['False'])
        self.assertEqual(self.state('--think', 'auto'), ['False'])
        self.assertEqual(self.state(model=self.model), ['undefined'])

    def test_info_shows_what_auto_has_chosen(self):
        source = self.TEMPLATE + '{# </think> #}'
        template = '@' + self.write('thoughts.jinja', source)
        self.assertIn('thinking    off (family)', self.chat('--info', '--template', template)[0])
        self.assertIn('thinking    on (template)', self.chat('--info', '--template', template, model=self.model)[0])
        self.assertIn('thinking    on (flag)', self.chat('--info', '--template', template, '--think', 'on')[0])
        sheet = json.loads(self.chat('--info', '--json', '--template', template)[0])
        self.assertEqual(sheet['thinking'], {'value': 'off', 'source': 'family', 'budget': None})

    def test_on_and_off_set_the_variable(self):
        for model in (self.bonsai, self.model):
            self.assertEqual(self.state('--think', 'on', model=model), ['True'])
            self.assertEqual(self.state('--think', 'off', model=model), ['False'])

    def test_a_template_argument_wins(self):
        for words in ((), ('--think', 'on')):
            self.assertEqual(self.state(*words, '--template-arg', 'enable_thinking="mine"'), ['mine'])

    def test_set_changes_the_next_prompt(self):
        commands = '/dump\n/set think on\n/dump\n/set think off\n/dump\n/set think default\n/dump'
        self.assertEqual(self.state(commands=commands, model=self.model), ['undefined', 'True', 'False', 'undefined'])

    def test_pipes_lines_and_batch_use_the_setting(self):
        """The three states have texts of different lengths, and the byte vocabulary has one token per byte."""
        for words in (('--lines',), ('--batch', '2'), ()):
            counts = []
            for think in ('on', 'off', 'auto'):
                out, _ = self.chat('--template', self.template, '--json', '-n', '1', '--think', think, *words,
                                   stdin=b'a\n')
                counts.append(json.loads(out)['prompt_tokens'])
            self.assertEqual((counts[1] - counts[0], counts[2]), (len('False') - len('True'), counts[1]), words)


class Budget(FamilyCase):
    """The budget of a thought with the engine. The prompt opens the thought, and a model with random weights does not
    close it."""
    TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n"
                "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}")
    CLOSE = '\n</think>\n\n'
    WORDS = ('--think-budget', '9', '-n', '40', '--seed', '4', '--temp', '1', '--json')
    PROMPTS = ('one', 'two and a half', 'three')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.qwen = cls.make('qwen.gguf', '--preset', 'qwen3-tiny', '--vocab', 'qwen')
        cls.template = ('--template', '@' + cls.write('opens.jinja', cls.TEMPLATE))

    def turns(self, *args, stdin):
        out, said = self.chat(*self.template, *self.WORDS, *args, model=self.qwen, stdin=stdin.encode())
        self.assertEqual(said, '')
        return [json.loads(line) for line in out.splitlines()]

    def test_batches_speculation_and_alternatives_change_nothing(self):
        alone = [self.turns(stdin=prompt)[0] for prompt in self.PROMPTS]
        for turn in alone:
            self.assertEqual((turn['thought_tokens'], turn['thought_cut'], turn['finish']), (9, True, 'length'))
            self.assertEqual(turn['completion_tokens'], 40)
        kept = ('text', 'thought', 'finish', 'completion_tokens', 'thought_tokens', 'thought_cut')
        for more in (('--batch', '1'), ('--batch', '3'), ('--batch', '2', '--logprobs', '2')):
            for turn, same in zip(self.turns(*more, stdin='\n'.join(self.PROMPTS)), alone, strict=True):
                self.assertEqual([turn[key] for key in kept], [same[key] for key in kept], more)
        for more in (('--spec', 'on'), ('--spec', 'off'), ('--logprobs', '1'), ('--ubatch', '2')):
            for prompt, same in zip(self.PROMPTS, alone):
                turn = self.turns(*more, stdin=prompt)[0]
                self.assertEqual([turn[key] for key in kept], [same[key] for key in kept], more)

    def test_log_probabilities_of_the_closing_tokens_are_those_of_the_model(self):
        for more in ((), ('--batch', '1')):
            entries = self.turns('--logprobs', '3', *more, stdin='one')[0]['logprobs']
            self.assertEqual(len(entries), 40)
            closing = entries[9:12]  # after the 9 tokens of the budget
            self.assertEqual([entry['text'] for entry in closing], ['\n', '</think>', '\n'])
            for entry in closing:
                self.assertLess(entry['logprob'], 0)
                self.assertTrue(entry['id'] in [t['id'] for t in entry['top']] or
                                entry['logprob'] <= min(t['logprob'] for t in entry['top']))

    def test_saved_states_are_where_the_next_prompt_differs(self):
        """A small micro-batch, so that the windows of this model need rings, and rings need saved states."""
        maple = self.make('maple.gguf', '--preset', 'maple-tiny', '--vocab', 'qwen')
        runs = []
        for ubatch in ('16', '512'):
            out, _ = self.chat(*self.template, *self.WORDS, '--lines', '--ubatch', ubatch, model=maple,
                               stdin=b''.join(b'question %d\n' % i for i in range(5)))
            runs.append([json.loads(line) for line in out.splitlines()])
        self.assertEqual([t['text'] for t in runs[0]], [t['text'] for t in runs[1]])
        self.assertEqual([t['saved_states'] for t in runs[0]], [1, 2, 3, 4, 5])
        for turns in runs:
            for before, after in zip(turns, turns[1:]):
                self.assertEqual(after['reused_tokens'], before['prompt_tokens'] - 2)  # without "<think>" and "\n"

    def test_a_line_of_a_batch_has_its_own_budget(self):
        lines = [json.dumps({'prompt': 'one', 'think_budget': n}) for n in (0, 3, 9)] + ['{"prompt": "one"}']
        turns = self.turns('--batch', '4', stdin='\n'.join(lines))
        self.assertEqual([t['thought_tokens'] for t in turns], [0, 3, 9, 9])
        self.assertEqual([t['settings']['think_budget'] for t in turns], [0, 3, 9, 9])
        self.assertEqual(turns[2]['text'], turns[3]['text'])

    def test_the_answer_is_that_after_the_same_tokens_of_the_model(self):
        """A new process continues an answer that ends with the closed thought."""
        path = self.path('cut.json')
        words = ('--template', self.template[1], '--load', path, '-i', '--temp', '0', '--json')
        for budget in ('0', '9'):
            out, _ = self.chat(*self.template, '--think-budget', budget, '-n', '40', '--temp', '0', '--json', '-i',
                               model=self.qwen, stdin=f'one\n/save {path}\n'.encode())
            whole = json.loads(out)
            with open(path, encoding='utf-8') as file:
                stored = json.load(file)
            answer = stored['messages'][-1]
            self.assertIn(self.CLOSE, answer['content'])
            n = int(budget) + 4
            head = answer['content'].index(self.CLOSE) + len(self.CLOSE)
            answer['content'], answer['ids'] = answer['content'][:head], answer['ids'][:n]
            self.write('cut.json', json.dumps(stored))
            out, said = self.chat(*words, '-n', str(40 - n), model=self.qwen, stdin=b'/continue\n')
            self.assertNotIn('tokenised again', said)
            self.assertEqual(json.loads(out)['text'], whole['text'], budget)
            os.unlink(path)


if __name__ == '__main__':
    main()
