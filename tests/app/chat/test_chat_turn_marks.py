#!/usr/bin/env python3
"""
test_chat_turn_marks.py CHAT MAKE_MODEL: the ids of an answer never contain tokens that delimit turns. With a
scripted generator.
"""
import json
import os
import re
import struct

from support import gguf_edit
from support.chat_case import ChatCase
from support.program_case import main

USER_DEFINED = 4
MARK = '<|reserved_special_token_4|>'  # between the marks of Llama 3, not in any template
MARK_ID = 2752
START, END, EOT, BOS = 2750, 2751, 2753, 2744
TEMPLATE = (b"{% for m in messages %}<|reserved_special_token_4|>{{ m.role }}: {{ m.content }}\n"
            b"{% endfor %}{% if add_generation_prompt %}<|reserved_special_token_4|>assistant: {% endif %}")
TOOLS = (b"{% for m in messages %}{% if m.role == 'tool' %}<|reserved_special_token_4|>{{ m.content }}"
         b"{% else %}{{ m.role }}: {{ m.content }}<|eot_id|>{% endif %}{% endfor %}assistant: ")
THOUGHTS = (b"{% for m in messages %}{{ m.role }}: <think></think>{{ m.content }}<|eot_id|>{% endfor %}"
            b"assistant: ")


class TurnMarks(ChatCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.make('llama.gguf', '--vocab', 'llama3-like', '--n-vocab', '3000')
        cls.user = cls.with_types('user.gguf', {MARK_ID: USER_DEFINED})

    @classmethod
    def with_types(cls, name, types):
        """The model with other types of tokens."""
        with open(cls.model, 'rb') as file:
            data = bytearray(file.read())
        at = gguf_edit.items_at(data, 'tokenizer.ggml.token_type')
        for token, kind in types.items():
            struct.pack_into('<i', data, at + 4 * token, kind)
        return cls.write(name, bytes(data))

    def forged(self, model, template, ids, text='ok'):
        """Write a saved chat whose answer has this text, and the ids of 'ok' followed by `ids`. Returns the
        arguments that use it."""
        self.fake('ok')
        words = ('--template', template, '--session', os.path.join(self.home.name, 'forged.json'))
        if os.path.exists(words[3]):
            os.unlink(words[3])
        done = self.chat(*words, '-p', 'a', model=model)
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        with open(words[3], encoding='utf-8') as file:
            stored = json.load(file)
        answer = stored['messages'][-1]
        self.assertEqual(answer['content'], 'ok')
        answer['content'] = text
        answer['ids'] += ids
        with open(words[3], 'w', encoding='utf-8') as file:
            json.dump(stored, file)
        return words

    def dump(self, words, model):
        done = self.chat(*words[:2], '--load', words[3], '-i', stdin=b'/dump\n', model=model)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode()

    def test_control_tokens_of_the_template_are_not_read_from_a_file(self):
        for token in (START, END, EOT, BOS):
            words = self.forged(self.model, 'llama3', [token])
            said = self.dump(words, self.model)
            self.assertIn('1 of 1 answers are tokenised again: the tokens of 1 would begin or end a turn', said)
            self.assertIn('<|end_header_id|>\n\nok<|eot_id|>', said)

    def test_tokens_that_delimit_no_turn_stay(self):
        words = self.forged(self.model, 'llama3', [MARK_ID])
        said = self.dump(words, self.model)
        self.assertNotIn('tokenised again', said)
        self.assertIn('ok' + MARK, said)

    def test_user_defined_tokens_of_the_template_are_not_read_from_a_file(self):
        template = self.write('marks.jinja', TEMPLATE)
        words = self.forged(self.user, template, [MARK_ID], 'ok' + MARK)
        done = self.chat(*words, '--json', '-p', 'b', model=self.user)
        self.assertIn(b'1 of 1 answers are tokenised again: the tokens', done.stderr)
        n_with_ids = json.loads(done.stdout)['prompt_tokens']
        words = self.forged(self.user, template, [], 'ok' + MARK)  # no ids: the text is tokenised
        done = self.chat(*words, '--json', '-p', 'b', model=self.user)
        self.assertEqual(json.loads(done.stdout)['prompt_tokens'], n_with_ids)
        said = self.dump(self.forged(self.user, 'llama3', [MARK_ID], 'ok' + MARK), self.user)
        self.assertNotIn('tokenised again', said)  # no mark of this template

    def test_the_mark_of_a_tool_delimits_a_turn(self):
        template = self.write('tools.jinja', TOOLS)
        words = self.forged(self.model, template, [MARK_ID])
        self.assertIn('would begin or end a turn', self.dump(words, self.model))

    def test_markers_of_thoughts_stay(self):
        marker = '<think>'.ljust(len(MARK), '|')  # as long as MARK: no offset in the file changes
        with open(self.user, 'rb') as file:
            model = self.write('thinks.gguf', file.read().replace(MARK.encode(), marker.encode()))
        template = self.write('thoughts.jinja', THOUGHTS.replace(b'<think>', marker.encode()))
        said = self.dump(self.forged(model, template, [MARK_ID], 'ok' + marker), model)
        self.assertNotIn('tokenised again', said)
        self.assertIn('ok' + marker, said)

    def renamed(self, name):
        """The user-defined token with another name of 28 bytes: a model, a template with it, and the name."""
        with open(self.user, 'rb') as file:
            model = self.write('renamed.gguf', file.read().replace(MARK.encode(), name))
        return model, self.write('renamed.jinja', TEMPLATE.replace(MARK.encode(), name)), name.decode()

    def test_a_word_with_letters_beyond_ascii_is_no_mark(self):
        model, template, word = self.renamed('café'.encode() + b's' * 23)
        said = self.dump(self.forged(model, template, [MARK_ID], 'ok' + word), model)
        self.assertNotIn('tokenised again', said)
        self.assertIn('ok' + word, said)

    def test_a_word_between_full_width_bars_is_a_mark(self):
        model, template, mark = self.renamed('｜'.encode() + b'u' * 22 + '｜'.encode())
        words = self.forged(model, template, [MARK_ID], 'ok' + mark)
        self.assertIn('would begin or end a turn', self.dump(words, model))

    def test_a_sampled_mark_ends_the_answer(self):
        template = self.write('marks.jinja', TEMPLATE)
        for model, words, mark in ((self.model, ('--template', 'llama3'), '<|start_header_id|>'),
                                   (self.model, ('--raw',), '<|begin_of_text|>'),
                                   (self.user, ('--template', template), MARK)):
            self.fake('yes' + mark + 'system', special=1)
            turn = json.loads(self.chat(*words, '--json', '-p', 'x', model=model).stdout)
            self.assertEqual((turn['text'], turn['finish']), ('yes', 'stop'))

    def test_marks_of_the_other_setting_of_thoughts_end_an_answer_too(self):
        source = TEMPLATE.replace(b'<|reserved_special_token_4|>',
                                  b"{{ '<|reserved_special_token_4|>' if enable_thinking else '' }}")
        for condition, setting in ((b'if enable_thinking', 'on'), (b'if enable_thinking is false', 'off')):
            template = self.write('switch.jinja', source.replace(b'if enable_thinking', condition))
            self.fake('yes' + MARK + 'system', special=1)
            done = self.chat('--template', template, '-i', '--json', model=self.user,
                             stdin=f'/set think {setting}\nx\n'.encode())
            turn = json.loads(done.stdout)
            self.assertEqual((turn['text'], turn['finish']), ('yes', 'stop'), condition)

    def test_a_snapshot_with_forged_ids_is_not_used(self):
        self.fake('yes', special=1)
        words = ('--template', 'llama3', '--session', self.path('snap.json'), '--snapshot')
        done = self.chat(*words, '-p', 'a')
        self.assertIn(b'snapshot written', done.stderr)
        self.fake('yes')
        done = self.chat(*words, '-p', 'b')
        self.assertIn(b'snapshot loaded', done.stderr)
        with open(self.path('snap.json'), encoding='utf-8') as file:
            stored = json.load(file)
        stored['messages'][1]['ids'] += [START]  # as if an older program had sampled it
        self.write('snap.json', json.dumps(stored))
        done = self.chat(*words, '-p', 'c')
        self.assertIn(b'would begin or end a turn', done.stderr)

    def test_text_of_a_mark_is_only_text(self):
        """Also in a conversation whose template has not used the mark yet."""
        source = TEMPLATE.replace(b'<|reserved_special_token_4|>{{ m.role }}',
                                  b"{{ '<|reserved_special_token_4|>' if m.role == 'system' else '' }}{{ m.role }}")
        source = source.replace(b'<|reserved_special_token_4|>assistant', b'assistant')
        template = self.write('system.jinja', source)
        self.fake('ok')
        done = self.chat('--template', template, '-i', stdin=MARK.encode() + b'\n/tokens ' + MARK.encode() + b'\n',
                         model=self.user)
        ids = [int(row) for row in re.findall(r'(?m)^ *(\d+)  \|', done.stderr.decode())]
        self.assertGreater(len(ids), 5, done.stderr)
        self.assertNotIn(MARK_ID, ids)


if __name__ == '__main__':
    main()
