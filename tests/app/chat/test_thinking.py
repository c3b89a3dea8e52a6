#!/usr/bin/env python3
"""
test_thinking.py CHAT MAKE_MODEL: thoughts, their budget, and the part of the KV cache that stays when
the template drops the thoughts of earlier answers. With a scripted generator, one token per byte.
"""
import json
import os
import re

from support.chat_case import ChatCase
from support.program_case import main

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'templates', 'published')
QWEN3 = '@' + os.path.join(TEMPLATES, 'published_Qwen-Qwen3-0.6B.jinja')
SMOL = '@' + os.path.join(TEMPLATES, 'published_HuggingFaceTB-SmolLM3-3B.jinja')
# As Qwen3.5: the prompt opens the thought.
RUNNING = ("{% for m in messages %}<|im_start|>{{ m.role }}\n"
           "{% if m.role == 'assistant' and '</think>' in m.content %}"
           "{% if loop.last %}<think>\n{{ m.content.split('</think>')[0].strip() }}\n</think>\n\n{% endif %}"
           "{{ m.content.split('</think>')[-1].lstrip() }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
           "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}")
# The template never shows how a thought is closed.
SILENT = ("{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}"
          "{% if add_generation_prompt %}assistant: {% endif %}")
PLAN, ANSWER = 'A long plan of many words.', 'Four.'
THOUGHT = f'<think>\n{PLAN}\n</think>\n\n{ANSWER}'


class ThinkCase(ChatCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.running = '@' + cls.write('running.jinja', RUNNING)
        cls.silent = '@' + cls.write('silent.jinja', SILENT)

    def turns(self, *args, lines='a\n', template=QWEN3):
        """The objects of --json, one per line of input."""
        done = self.chat('--template', template, '--lines', '--json', *args, stdin=lines.encode())
        self.assertEqual((done.returncode, done.stderr), (0, b''), args)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def dialog(self, *lines, template=QWEN3, args=()):
        """Answers and notices of a chat with these lines."""
        done = self.chat('--template', template, '-i', *args, stdin=('\n'.join(lines) + '\n').encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()


class Budget(ThinkCase):
    def test_the_thought_ends_after_the_budget_and_the_answer_begins(self):
        self.fake(THOUGHT)
        turn = self.turns('--think-budget', '7')[0]
        self.assertEqual((turn['text'], turn['thought'], turn['finish']), (ANSWER, '\nA long\n', 'stop'))
        self.assertEqual((turn['thought_tokens'], turn['thought_cut']), (7, True))
        self.assertEqual(turn['settings']['think_budget'], 7)
        self.assertEqual(turn['completion_tokens'], len('<think>\nA long\n</think>\n\n' + ANSWER))

    def test_a_shorter_thought_is_not_touched(self):
        self.fake(THOUGHT)
        for args, budget in ((('--think-budget', '500'), 500), ((), None), (('--think-budget', 'off'), None)):
            turn = self.turns(*args)[0]
            self.assertEqual((turn['text'], turn['thought'].strip()), (ANSWER, PLAN))
            self.assertEqual((turn['thought_cut'], turn['settings']['think_budget']), (False, budget))
            self.assertEqual(turn['completion_tokens'], len(THOUGHT))

    def test_a_thought_that_the_prompt_opened_is_closed(self):
        self.fake(THOUGHT.removeprefix('<think>'))
        for budget, thought in ((4, '\nA l\n'), (0, '\n')):
            turn = self.turns('--think-budget', str(budget), template=self.running)[0]
            self.assertEqual((turn['text'], turn['thought']), (ANSWER, thought))
            self.assertEqual(turn['thought_tokens'], budget)

    def test_the_text_that_closes_is_that_of_the_template(self):
        self.fake(THOUGHT)
        smol = RUNNING.replace('</think>\n\n', '\n~</think>~')
        for template, close in ((QWEN3, '\n</think>\n\n'), (SMOL, '\n</think>\n'), (self.silent, '\n</think>\n\n'),
                                ('@' + self.write('tilde.jinja', smol), '\n\n~</think>~')):
            path = self.path('close.json')
            self.fake(THOUGHT if template != '@' + self.path('tilde.jinja') else THOUGHT.removeprefix('<think>'))
            done = self.chat('--template', template, '--think-budget', '3', '--session', path, '-p', 'a')
            self.assertEqual(done.returncode, 0, done.stderr)
            message = self.saved(path)[-1]
            self.assertIn('\nA ' + close + ANSWER, message['content'])
            self.assertEqual(bytes(message['ids']).decode(), message['content'])
            os.unlink(path)

    def test_zero_turns_thoughts_off(self):
        self.fake(ANSWER)
        self.assertIn('<think>\n\n</think>\n\nFour.', self.dialog('a', '/dump', args=('--think-budget', '0'))[1]
                      .replace('<|im_end|>', ''))
        off, budget = (self.turns(*args)[0]['prompt_tokens'] for args in (('--think', 'off'), ('--think-budget', '0')))
        self.assertEqual(off, budget)
        self.fake(THOUGHT)
        turn = self.turns('--think', 'on', '--think-budget', '0')[0]  # the model begins a thought
        self.assertEqual((turn['text'], turn['thought'], turn['thought_tokens']), (ANSWER, '\n', 0))

    def test_a_character_is_not_cut(self):
        self.fake('<think>\n\u00e9\u20ac\U0001f600 plan</think>' + ANSWER)
        for budget, thought in ((1, '\n'), (2, '\n\u00e9'), (3, '\n\u00e9'), (4, '\n\u00e9\u20ac'),
                                (7, '\n\u00e9\u20ac\U0001f600')):
            turn = self.turns('--think-budget', str(budget))[0]
            self.assertEqual((turn['thought'], turn['text']), (thought + '\n', ANSWER), budget)

    def test_max_tokens_counts_the_thought_and_the_closing_text(self):
        self.fake(THOUGHT)
        turn = self.turns('--think-budget', '3', '-n', '14')[0]
        self.assertEqual((turn['text'], turn['finish'], turn['completion_tokens']), ('', 'length', 14))

    def test_log_probabilities_have_an_entry_for_each_token(self):
        self.fake(THOUGHT)
        turn = self.turns('--think-budget', '3', '--logprobs', '1')[0]
        whole = '<think>\nA \n</think>\n\n' + ANSWER
        self.assertEqual(''.join(entry['text'] for entry in turn['logprobs']), whole)

    def test_screen_pipe_and_events_show_the_same(self):
        self.fake(THOUGHT)
        done = self.chat('--template', QWEN3, '--think-budget', '3', '-p', 'a')
        self.assertEqual((done.returncode, done.stdout.decode()), (0, ANSWER + '\n'))
        self.assertEqual(done.stderr.decode().strip(), 'A')
        done = self.chat('--template', QWEN3, '--think-budget', '3', '--jsonl', '-p', 'a')
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(''.join(e.get('thought', '') for e in events if e['event'] == 'token'), '\nA \n')
        self.assertEqual(''.join(e.get('text', '') for e in events if e['event'] == 'token'), ANSWER)

    def test_statistics_report_the_budget(self):
        self.fake(THOUGHT)
        _, said = self.dialog('a', '/stats', '/set think-budget off', '/retry', '/stats',
                              args=('--think-budget', '3', '--stats'))
        self.assertIn(', thought 3 tok (budget reached)', said)
        self.assertIn('thought     3 tok, ended because --think-budget was reached\n', said)
        self.assertIn(f'thought     {len(PLAN) + 2} tok\n', said)

    def test_set_retry_and_the_configuration_change_the_budget(self):
        self.fake(THOUGHT)
        _, said = self.dialog('/set think-budget 3', 'a', '/stats', '/retry think-budget=5', '/stats', '/retry',
                              '/stats', '/set think-budget default', '/retry', '/stats')
        counts = re.findall(r'^thought     (\d+) tok', said, re.M)
        self.assertEqual(counts, ['3', '5', '3', str(len(PLAN) + 2)])
        config = self.write('budget.conf', 'think-budget = 4\n')
        self.env['BITNET_CHAT_CONFIG'] = config
        self.assertEqual(self.turns()[0]['thought_tokens'], 4)

    def test_bad_values_are_refused(self):
        for bad in ('x', '-1', '1.5', '', '9999999999'):
            error = self.refuses(2, '--think-budget=' + bad, '-p', 'a')
            self.assertIn('off or a whole number', error)

    def test_a_template_without_thoughts_has_no_budget(self):
        self.fake(THOUGHT)
        template = '@' + self.write('none.jinja', "{% for m in messages %}{{ m.content }}{% endfor %}")
        turn = self.turns('--think-budget', '3', template=template)[0]
        self.assertEqual((turn['text'], turn['thought']), (THOUGHT, None))

    def test_a_closed_thought_is_in_the_cache_as_if_the_model_had_written_it(self):
        """/continue evaluates nothing but the last token."""
        self.fake(THOUGHT, ' More.')
        said, notes = self.dialog('a', '/continue', '/stats', args=('--think-budget', '3'))
        self.assertEqual(said, ANSWER + '\n\n More.\n')
        self.assertRegex(notes, r'prompt +(\d+) tok: \d+ reused, 1 evaluated')

    def test_a_long_text_between_thought_and_answer_is_not_used(self):
        self.fake(THOUGHT.removeprefix('<think>'))
        long = '@' + self.write('long.jinja', RUNNING.replace('</think>\n\n', '</think>' + 'x' * 200))
        turn = self.turns('--think-budget', '3', template=long)[0]
        self.assertEqual((turn['text'], turn['thought']), (ANSWER, '\nA \n'))


class Stored(ThinkCase):
    """Commands that show or copy an earlier answer."""

    def test_thoughts_are_left_out(self):
        self.env.update(DISPLAY=':9', PATH=self.home.name + ':/usr/bin:/bin')
        clip = os.path.join(self.home.name, 'clip')
        os.rename(self.write('xclip', f'#!/bin/sh\ncat > {clip}\n'), os.path.join(self.home.name, 'xclip'))
        os.chmod(os.path.join(self.home.name, 'xclip'), 0o755)
        for template, said in ((QWEN3, THOUGHT), (self.running, f'{PLAN}\n</think>\n\n{ANSWER}')):
            self.fake(said)
            notices = self.dialog('2+2', '/history', '/copy', template=template, args=['--no-thoughts'])[1]
            self.assertRegex(notices, rf'2\+2\n\[thought: \d+ bytes\] {ANSWER}\n')
            self.assertNotIn('plan', notices)
            with open(clip, encoding='utf-8') as file:
                self.assertEqual(file.read(), ANSWER)
            self.dialog('2+2', '/copy all', template=template)
            with open(clip, encoding='utf-8') as file:
                self.assertEqual(file.read(), f'user:\n2+2\n\nassistant:\n{ANSWER}')
            for words, found in (((), True), (('--no-thoughts',), False)):
                notices = self.dialog('2+2', '/find plan', template=template, args=words)[1]
                self.assertEqual('  1 it   A long plan' in notices, found, notices)
                self.assertEqual('1 line' in notices, found, notices)


    def test_an_export_has_them_only_in_json_and_there_in_a_field(self):
        paths = [os.path.join(self.home.name, 'talk.' + kind) for kind in ('txt', 'md', 'jsonl')]
        opened = THOUGHT.removeprefix('<think>')
        for template, said, args, thought, answer in (
                (QWEN3, THOUGHT, (), f'\n{PLAN}\n', ANSWER), (self.running, opened, (), f'\n{PLAN}\n', ANSWER),
                (self.running, opened, ('--no-thoughts',), f'\n{PLAN}\n', ANSWER),
                (QWEN3, THOUGHT, ('-n', '14'), '\nA long', ''), (self.running, opened, ('-n', '7'), '\nA long', '')):
            self.fake(said)
            self.dialog('2+2', *(f'/export {path}!' for path in paths), template=template, args=args)
            texts = []
            for path in paths:
                with open(path, encoding='utf-8') as file:
                    texts.append(file.read())
            self.assertEqual(texts[0], f'user:\n2+2\n\nassistant:\n{answer}\n\n')
            self.assertEqual(texts[1], f'## user\n\n2+2\n\n## assistant\n\n{answer}\n\n')
            self.assertEqual([json.loads(line) for line in texts[2].splitlines()],
                             [{'role': 'user', 'content': '2+2'},
                              {'role': 'assistant', 'content': answer, 'thought': thought}])


class Stopped(ThinkCase):
    """A thought that the prompt opened and that was stopped before </think> stays a thought."""
    HALF = 'A long plan of'

    def setUp(self):
        super().setUp()
        self.session_path = os.path.join(self.home.name, 'half.json')

    def session(self, *lines, args=(), template=None):
        return self.dialog(*lines, template=template or self.running,
                           args=('--session', self.session_path, '--no-thoughts', *args))

    def test_commands_show_no_answer(self):
        self.fake(PLAN)
        stop = ('-n', str(len(self.HALF)))
        for lines, args in ((('a', '/history', '/find plan', '/dump'), stop),
                            (('/history', '/find plan', '/dump'), ())):  # as read from the saved chat
            said, notices = self.session(*lines, args=args)
            self.assertEqual(said.strip(), '')
            self.assertIn(f'a\n[thought: {len(self.HALF)} bytes] \n', notices)
            self.assertIn('nothing matches', notices)
            self.assertIn(f'<|im_start|>assistant\n<think>\n{self.HALF}\n</think>\n\n<|im_end|>', notices)
        message = self.saved(self.session_path)[1]
        self.assertEqual((message['content'], message['starts_in_thought']), (self.HALF, True))

    def test_the_next_prompt_has_it_as_a_thought(self):
        self.fake(PLAN, '</think>' + ANSWER)
        _, notices = self.session('a', 'b', '/dump', args=('-n', str(len(self.HALF))))
        self.assertIn('<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nb', notices)
        self.assertNotIn('plan', notices)

    def test_it_can_be_continued_after_the_chat_was_loaded(self):
        self.fake(PLAN)
        self.session('a', args=('-n', str(len(self.HALF))))
        self.fake(' words\n</think>\n\n' + ANSWER)
        said, notices = self.session('/continue', '/history')
        self.assertEqual(said, ANSWER + '\n')
        self.assertIn(f'[thought: {len(self.HALF) + 7} bytes] {ANSWER}\n', notices)
        self.assertEqual(self.saved(self.session_path)[1]['starts_in_thought'], True)

    def test_an_answer_of_a_saved_chat_without_the_key_is_an_answer(self):
        self.fake(PLAN)
        self.session('a', args=('-n', str(len(self.HALF))))
        with open(self.session_path, encoding='utf-8') as file:
            kept = json.load(file)
        del kept['messages'][1]['starts_in_thought']
        with open(self.session_path, 'w', encoding='utf-8') as file:
            json.dump(kept, file)
        _, notices = self.session('/history')
        self.assertIn(f'a\n{self.HALF}\n', notices)

    def test_another_template_does_not_change_the_text(self):
        self.fake(PLAN)
        self.session('a', args=('-n', str(len(self.HALF))))
        none = '@' + self.write('none.jinja', "{% for m in messages %}{{ m.content }}|{% endfor %}")
        _, notices = self.session('/history', '/dump', template=none)
        self.assertIn(f'a\n{self.HALF}\n', notices)
        self.assertIn(f'a|{self.HALF}|', notices)


class Continuing(ThinkCase):
    def test_an_interrupted_thought_goes_on_as_a_thought(self):
        self.fake('<think>\nOne two', ' three</think>Four.')
        done = self.chat('--template', QWEN3, '-i', '--jsonl', stdin=b'a\n/continue\n')
        ends = [json.loads(line) for line in done.stdout.splitlines() if b'"end"' in line]
        self.assertEqual([(e['text'], e['thought']) for e in ends],
                         [('', '\nOne two'), ('Four.', '\nOne two three')])

    def test_the_budget_covers_both_parts(self):
        self.fake('\nOne two', ' three four</think>Four.')
        done = self.chat('--template', self.running, '-i', '--jsonl', '--think-budget', '12',
                         stdin=b'a\n/continue\n')
        ends = [json.loads(line) for line in done.stdout.splitlines() if b'"end"' in line]
        self.assertEqual([(e['text'], e['thought'], e['thought_tokens']) for e in ends],
                         [('', '\nOne two', 8), ('Four.', '\nOne two thr\n', 4)])


class Prefix(ThinkCase):
    """A template that drops old thoughts: the prompt differs from the KV cache behind the last question."""

    def test_only_the_last_answer_is_evaluated_again(self):
        self.fake(THOUGHT)
        for template in (QWEN3, self.running):
            self.fake(THOUGHT if template == QWEN3 else THOUGHT.removeprefix('<think>'))
            turns = self.turns(lines='a\nb\nc\nd\ne\n', template=template)
            self.assertEqual([t['reevaluated_tokens'] for t in turns], [0] + [len(ANSWER)] * 4)
            opened = len('<think>\n') if template == self.running else 0
            for before, after in zip(turns, turns[1:]):
                self.assertEqual(after['reused_tokens'], before['prompt_tokens'] - opened)

    def test_a_template_that_keeps_thoughts_evaluates_nothing_again(self):
        self.fake(THOUGHT)
        keeps = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}assistant: {# </think> #}{% endif %}")
        turns = self.turns(lines='a\nb\nc\n', template='@' + self.write('keeps.jinja', keeps))
        self.assertEqual([t['reevaluated_tokens'] for t in turns], [0, 0, 0])
        self.assertEqual(turns[2]['reused_tokens'], turns[1]['prompt_tokens'] + turns[1]['completion_tokens'])

    def counts(self, *lines):
        """(reused, evaluated) of the prompt of each /stats."""
        _, said = self.dialog(*lines)
        return [tuple(map(int, m)) for m in re.findall(r'tok: (\d+) reused, (\d+) evaluated', said)]

    def test_undo_edit_and_retry_evaluate_no_earlier_turn(self):
        self.fake(THOUGHT)
        third = self.counts('a', 'b', 'c', '/stats')[0]
        undone = self.counts('a', 'b', 'x', '/undo', 'c', '/stats')[0]
        self.assertEqual(sum(undone), sum(third))
        self.assertLessEqual(undone[1], third[1])  # the answers before it are in the cache by now
        twice = self.counts('a', 'b', 'x', '/undo 2', 'b', 'c', '/stats')[0]
        self.assertEqual(twice, third)
        self.assertEqual(self.counts('a', 'b', 'c', '/retry', '/stats')[0], (sum(third) - 1, 1))
        second = self.counts('a', 'b', '/stats')[0]
        edited = self.counts('a', 'b', 'c', '/edit 2', 'B', '/stats')[0]
        self.assertEqual(sum(edited), sum(second))
        self.assertLessEqual(edited[1], second[1])

    def test_statistics_report_what_was_evaluated_again(self):
        self.fake(THOUGHT)
        _, said = self.dialog('a', '/stats', 'b', '/stats', 'c', '/stats', args=('--stats',))
        self.assertEqual(re.findall(r'(\d+) of these were evaluated before', said), [str(len(ANSWER))] * 2)
        self.assertIn(f', {len(ANSWER)} again', said)
        self.assertRegex(said, r'in all +3 answers, prompts .*, 10 tok again,\n')

    def test_a_loaded_chat_was_not_evaluated_before(self):
        self.fake(THOUGHT)
        path = self.path('long.json')
        self.chat('--template', QWEN3, '--session', path, '--lines', stdin=b'a\nb\n')
        turn = self.turns('--session', path, lines='c\n')[0]
        self.assertEqual((turn['reused_tokens'], turn['reevaluated_tokens']), (0, 0))


class SavedStates(ThinkCase):
    """A model that can return only to saved states gets one where the next prompt will differ."""

    def test_the_state_is_where_the_next_prompt_differs(self):
        # n_unstable: how many tokens at the end of this prompt the next prompt will not repeat.
        for template, args, n_unstable in (
                (QWEN3, (), 0), (QWEN3, ('--think', 'off'), len('<think>\n\n</think>\n\n')),
                (self.running, (), len('<think>\n')), (SMOL, ('--think', 'off'), 0), (self.silent, (), 0)):
            opened = template == self.running
            self.fake(THOUGHT.removeprefix('<think>') if opened else THOUGHT, states=1, stable=1)
            done = self.chat('--template', template, '--lines', '--json', *args, stdin=b'a\nb\nc\n')
            turns = [json.loads(line) for line in done.stdout.splitlines()]
            said = [tuple(map(int, m)) for m in re.findall(r'(\d+) of (\d+) stable', done.stderr.decode())]
            self.assertEqual(said, [(t['prompt_tokens'] - n_unstable if n_unstable else 0, t['prompt_tokens'])
                                    for t in turns])
            if n_unstable:
                self.assertEqual([t['reused_tokens'] for t in turns[1:]], [n for n, _ in said[:-1]])

    def test_a_model_without_saved_states_is_told_no_stable_length(self):
        self.fake(THOUGHT.removeprefix('<think>'), stable=1)
        done = self.chat('--template', self.running, '-p', 'a')
        self.assertRegex(done.stderr.decode(), r'(?m)(^|\D)0 of \d+ stable')


class Setting(ThinkCase):
    def thinking(self, *args, template=QWEN3):
        return json.loads(self.chat('--info', '--json', '--template', template, *args).stdout)['thinking']

    def test_info_shows_what_was_chosen(self):
        for args, value, source in (((), 'on', 'template'), (('--think', 'off'), 'off', 'flag'),
                                    (('--think', 'on'), 'on', 'flag'), (('--think-budget', '0'), 'off', 'think-budget'),
                                    (('--template-arg', 'enable_thinking=false'), 'off', 'template-arg')):
            self.assertEqual([self.thinking(*args)[key] for key in ('value', 'source')], [value, source], args)
        self.assertEqual(self.thinking('--think-budget', '9')['budget'], 9)
        self.assertIsNone(self.thinking()['budget'])
        self.assertEqual(self.thinking(template=self.silent), {'value': 'on', 'source': 'template', 'budget': None})
        self.assertEqual(self.thinking(template='chatml')['value'], 'none')
        # A template whose own default is off, as in the small models of Qwen3.5.
        off = RUNNING.replace('<think>\n{% endif %}', "{% if enable_thinking is defined and enable_thinking %}<think>\n"
                              "{% else %}<think>\n\n</think>\n\n{% endif %}{% endif %}")
        self.assertEqual(self.thinking(template='@' + self.write('off.jinja', off))['value'], 'off')

    def test_the_command_info_follows_set(self):
        self.fake(ANSWER)
        _, said = self.dialog('/info', '/set think off', '/info', '/set think on', '/set think-budget 50', '/info')
        self.assertEqual(re.findall(r'^thinking +(.*)', said, re.M),
                         ['on (template)', 'off (set)', 'on (set), at most 50 tok (set)'])

    def test_set_says_when_there_is_no_switch(self):
        self.fake(ANSWER)
        notice = 'the chat template has no switch for thoughts'
        self.assertIn(notice, self.dialog('/set think off', template=self.silent)[1])
        self.assertNotIn('no effect', self.dialog('/set think off', '/set think-budget 5')[1])
        self.assertNotIn('no effect', self.dialog('/set think-budget 5', template=self.silent)[1])
        for command in ('/set think off', '/set think-budget 5'):
            self.assertIn('the chat template has no thoughts', self.dialog(command, template='chatml')[1])

    def test_the_option_off_says_when_it_has_no_effect(self):
        self.fake('ok', 'ok')
        deepseek = '@' + os.path.join(TEMPLATES, 'published_deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja')
        always = '@' + self.write('always.jinja', RUNNING + '{# enable_thinking #}')
        no_switch, begins = 'has no switch for thoughts', 'begins a thought all the same'
        for template, reason in ((deepseek, no_switch), (self.running, no_switch), (always, begins)):
            said = f'bitnet-chat: warning: --think off has no effect: the chat template {reason}\n'
            done = self.chat('--template', template, '--think', 'off', '--lines', '--json', stdin=b'a\nb\n')
            self.assertEqual((done.returncode, done.stderr.decode()), (0, said))
            for args in (('-q', '--think', 'off'), ('--think', 'on'), ()):
                self.turns(*args, template=template)
        self.turns('--think', 'off')
        self.turns('--think', 'off', '--template-arg', 'enable_thinking=true', template=always)  # it is stronger
        self.turns('--think', 'off', template='chatml')  # has no thoughts

    def test_retry_may_change_the_setting_for_one_answer(self):
        self.fake(ANSWER)
        lines = ('a', '/stats', '/retry think=off', '/stats', '/retry', '/stats')
        _, said = self.dialog(*lines)
        n = [int(x) for x in re.findall(r'prompt +(\d+) tok', said)]
        self.assertEqual((n[1] - n[0], n[2]), (len('<think>\n\n</think>\n\n'), n[0]))
        # The arguments of the template stay in force, and win.
        _, said = self.dialog(*lines, args=('--template-arg', 'enable_thinking=true'))
        self.assertEqual(len(set(re.findall(r'prompt +(\d+) tok', said))), 1)

    def test_an_answer_that_fails_in_its_thought_leaves_one_empty_line_between_the_others(self):
        for words in ([], ['--no-stream']):
            self.fake('ok', '<think>a long thought', fail_at=15)
            done = self.chat('--lines', '--keep-going', '--template', QWEN3, *words, stdin=b'a\nb\nc\n')
            self.assertEqual((done.returncode, done.stdout), (1, b'ok\n\nok\n'), done.stderr)


class Separated(ChatCase):
    TEMPLATE = b"{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}assistant: "

    def test_thoughts_are_separated_from_the_answer(self):
        self.fake('<think>\nA plan.\n</think>\n\nFour.')
        template = '@' + self.write('thinks.jinja', self.TEMPLATE)
        done = self.chat('--template', template, '-p', 'two and two?')
        self.assertEqual((done.returncode, done.stdout), (0, b'Four.\n'))
        self.assertIn(b'A plan.', done.stderr)
        done = self.chat('--template', template, '-p', 'two and two?', '--no-thoughts')
        self.assertEqual((done.stdout, done.stderr), (b'Four.\n', b''))
        answer = json.loads(self.chat('--template', template, '-p', 'two and two?', '--json').stdout)
        self.assertEqual(answer['text'], 'Four.')
        self.assertEqual(answer['thought'].strip(), 'A plan.')

    def test_other_text_begins_a_line_after_an_unfinished_thought(self):
        template = '@' + self.write('thinks.jinja', self.TEMPLATE)
        self.fake('<think>A plan.</think>Four.')
        done = self.chat('--template', template, '-p', 'x', '-n', '9', '--stats')
        self.assertRegex(done.stderr, rb'\AA \n\[9 tok, [^\n]*\]\n\Z')
        self.assertEqual(self.chat('--template', template, '-p', 'x', '-n', '9').stderr, b'A \n')
        self.fake('<think>A plan.</think>Four.', fail_at=10)
        done = self.chat('--template', template, '-p', 'x')
        self.assertRegex(done.stderr, rb'\AA ?\nbitnet-chat: the fake device failed\n\Z')

    def test_a_template_without_thoughts_leaves_the_tags(self):
        self.fake('<think>x</think>y')
        template = '@' + self.write('plain.jinja', b'{{ messages[0].content }}')
        self.assertEqual(self.chat('--template', template, '-p', 'q').stdout, b'<think>x</think>y\n')


if __name__ == '__main__':
    main()
