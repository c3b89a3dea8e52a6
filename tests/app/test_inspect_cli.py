#!/usr/bin/env python3
"""
test_inspect_cli.py INSPECT MAKE_MODEL: every verb of bitnet-inspect as a script uses it, on
generated models and on files that are not models.
"""
import array
import json
import math
import os
import re
import struct
from unittest import mock

from support import gguf_edit
from support.program_case import ProgramCase, main

TOKENS = '256,84,104,101,32,113,117,105,99,107,32,98,114,111,119,110,32,102,111,120,260,0,255,10'
N_TOKENS = TOKENS.count(',') + 1
N_VOCAB = 262
HELLO = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]'
CHATML = ('<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n'
          '<|im_start|>assistant\n')


class Usage(ProgramCase):
    def test_wrong_arguments_are_exit_2(self):
        for words in ([], ['inspekt'], ['info'], ['info', 'a', 'b'], ['tokenize'],
                      ['info', '--jsn', 'm'], ['logits', 'm'], ['perplexity', 'm'],
                      ['info', self.model, '--ids'],
                      ['info', self.model, '--threads', '-1'], ['info', self.model, '--ctx', 'nan'],
                      ['info', self.model, '--device', 'gpu'],
                      ['info', self.model, '--isa', 'sse2'],
                      ['logits', self.model, '--tokens', '1,,2', '--out', 'x'],
                      ['prompt', '--messages', 'x'], ['prompt', '--template', 'chatml'],
                      ['prompt', '--template', 'chatml', '--messages', 'x', '--ids']):
            self.fails(2, *words)

    def test_an_error_names_option_value_and_range(self):
        self.assertEqual(self.fails(2, 'info', self.model, '--ubatch', '0'),
                         "bitnet-inspect: --ubatch '0': expected a whole number from 1 to 4096\n")

    def test_help_and_version(self):
        text = self.succeeds('--help').decode()
        for verb in ('info', 'check', 'tokenize', 'detokenize', 'prompt', 'logits', 'perplexity',
                     'experts'):
            self.assertIn(f'bitnet-inspect {verb} ', text)
        self.assertIn('--i2s-layout', text)
        text = self.succeeds('tokenize', '--help').decode()
        self.assertIn('--special', text)
        self.assertNotIn('--messages', text)
        self.assertEqual(self.succeeds('help', 'tokenize').decode(), text)
        self.assertEqual(self.succeeds('help'), self.succeeds('--help'))
        self.assertRegex(self.succeeds('--version').decode(), r'^bitnet-inspect \d+\.\d+\.\d+\n$')

    def test_files_that_are_not_models_are_exit_3_for_every_verb(self):
        text = self.write('text.txt', 'some text')
        messages = self.write('messages.json', HELLO)
        for path in self.models_that_do_not_load():
            for words in (['info', path], ['info', path, '--json'], ['check', path],
                          ['tokenize', path], ['detokenize', path],
                          ['prompt', path, '--messages', messages],
                          ['logits', path, '--tokens', '1', '--out', self.path('out')],
                          ['perplexity', path, text]):
                self.assertIn(path, self.fails(3, *words))

    def test_a_full_disk_is_exit_5(self):
        for words in (['info', self.model], ['info', self.model, '--json'], ['--help']):
            with open('/dev/full', 'wb') as full:
                done = self.run_program(*words, stdout=full)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertRegex(done.stderr, rb'^bitnet-inspect: cannot write [a-zA-Z ]+: No space left on device\n$')

    def test_a_refused_template_is_exit_2_a_failing_one_1(self):
        messages = self.write('messages.json', HELLO)
        for code, text in ((2, '{{ frob('), (2, "{% extends 'x' %}"), (2, ''),
                           (2, '{{ ' + '[' * 9999), (1, "{{ raise_exception('no') }}"),
                           (1, '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}')):
            path = self.write('refused.jinja', text)
            self.fails(code, 'prompt', '--template', '@' + path, '--messages', messages)


class Info(ProgramCase):
    def test_a_split_model_shows_its_parts(self):
        with open(self.model, 'rb') as file:
            first = file.read()
        n_tensors, = struct.unpack_from('<Q', first, 8)
        second = b'GGUF' + struct.pack('<IQQ', 3, 0, 0)
        paths = [self.write(f'split-0000{i + 1}-of-00002.gguf', gguf_edit.with_keys(
            data, ('split.no', gguf_edit.I32, i), ('split.count', gguf_edit.I32, 2),
            ('split.tensors.count', gguf_edit.I32, n_tensors))) for i, data in enumerate((first, second))]
        for path in paths:
            self.assertRegex(self.succeeds('info', path).decode(), r'\n  parts +2\n')
            info = json.loads(self.succeeds('info', path, '--json'))['file']
            self.assertEqual((info['n_parts'], info['bytes']), (2, sum(map(os.path.getsize, paths))))
        self.assertNotRegex(self.succeeds('info', self.model).decode(), r'\n  parts ')

    def test_json_holds_the_numbers_of_the_file(self):
        info = json.loads(self.succeeds('info', self.model, '--json', '--ctx', '100'))
        self.assertEqual(info['file']['bytes'], os.path.getsize(self.model))
        self.assertEqual(info['model']['architecture'], 'bitnet-b1.58')
        self.assertEqual(info['model']['n_vocab'], N_VOCAB)
        self.assertEqual(info['model']['ternary_type'], 'I2_S')
        self.assertEqual(info['metadata']['general.architecture'], 'bitnet-b1.58')
        self.assertEqual(sum(t['n_tensors'] for t in info['tensor_types'].values()),
                         info['file']['n_tensors'])
        self.assertEqual(info['tensor_types']['I2_S']['n_tensors'], 7 * info['model']['n_layers'])
        memory = info['memory']
        self.assertEqual(memory['n_ctx'], 100)
        self.assertEqual(memory['kv_bytes'], 100 * memory['kv_bytes_per_token'])
        self.assertGreater(memory['weight_bytes'], 0)
        tables = 262 * 256 * 2  # the tied embedding in F16, whose rows are read from the file
        self.assertEqual(memory['table_bytes'], tables)
        self.assertEqual(memory['total_bytes'], memory['weight_bytes'] + memory['kv_bytes'] + memory['scratch_bytes']
                         + tables)
        untied = json.loads(self.succeeds('info', self.make('untied.gguf', '--untied'), '--json'))['memory']
        self.assertEqual(untied['table_bytes'], 2 * tables)
        half = json.loads(self.succeeds('info', self.model, '--json', '--kv', 'q8'))['memory']
        self.assertLess(half['kv_bytes_per_token'], 0.6 * memory['kv_bytes_per_token'])
        self.assertEqual(info['tokenizer']['bos']['id'], 256)
        self.assertEqual(info['model']['activations'], 'int8 per token')
        self.assertIn('training', info['model']['activations_reason'])
        self.assertIn('cpu', [d['name'] for d in info['devices'] if d['usable']])

    def test_integers_of_the_metadata_stay_integers(self):
        numbers = {'test.i32': (gguf_edit.I32, -7), 'test.i64': (gguf_edit.I64, -(1 << 53) - 1),
                   'test.f32': (gguf_edit.F32, -2)}  # the number of 64 bits is not exact as a double
        with open(self.model, 'rb') as file:
            data = gguf_edit.with_keys(file.read(), *((key, *value) for key, value in numbers.items()))
        text = self.succeeds('info', self.write('numbers.gguf', data), '--json').decode()
        metadata = json.loads(text)['metadata']
        for key, (_, value) in numbers.items():
            self.assertEqual(metadata[key], value)
            self.assertEqual(isinstance(metadata[key], int), key != 'test.f32')

    def test_info_says_that_a_file_is_rotated(self):
        path = self.make('rotated.gguf', '--rotated', '64', '--untied')
        self.assertIn('rotated          Hadamard transforms, blocks of 64, explicit signs, version 1\n',
                      self.succeeds('info', path).decode())
        self.assertEqual(json.loads(self.succeeds('info', path, '--json'))['model']['rotation'],
                         {'version': 1, 'block': 64, 'signs': True})
        self.assertNotIn('rotated', self.succeeds('info', self.model).decode())

    def test_the_total_counts_the_tables_in_the_file(self):
        memory = json.loads(self.succeeds('info', self.model, '--json'))['memory']
        text = self.succeeds('info', self.model).decode()
        value, unit = re.search(r'(?m)^  total +([\d.]+) (\wB)$', text).groups()
        shown = float(value) * {'kB': 1e3, 'MB': 1e6}[unit]
        self.assertAlmostEqual(shown / memory['total_bytes'], 1, delta=0.01)

    def test_lines_have_every_section(self):
        text = self.succeeds('info', self.model).decode()
        for title in ('File', 'Model', 'Tensors by type', 'Memory', 'Tokenizer', 'Template',
                      'Devices', 'Metadata'):
            self.assertIn(f'{title}\n  ', text)
        self.assertIn('bitnet-b1.58', text)
        self.assertIn('layout a', text)
        self.assertIn('int8 per token: as in the training of this architecture', text)

    def test_the_planned_context_fits_into_the_memory(self):
        path = self.make('long.gguf', '--shape', f'2,256,4,2,768,{2 ** 30}')
        text = self.succeeds('info', path, '--device', 'cpu').decode()
        self.assertRegex(text, r'context +\d+ tokens, which fit into half of the free memory\n')
        plan = json.loads(self.succeeds('info', path, '--device', 'cpu', '--json'))['memory']
        self.assertLess(plan['n_ctx'], 2 ** 30)
        text = self.succeeds('info', path, '--ctx', str(2 ** 20)).decode()
        self.assertRegex(text, rf'context +{2 ** 20} tokens\n')

    def test_an_extended_model_with_qk_norm_is_described(self):
        path = self.make('qwen3.gguf', '--arch', 'qwen3', '--yarn', '4,64', '--head-dim', '96')
        words = ['info', path, '--activations', 'token']
        text = self.succeeds(*words).decode()
        self.assertIn('factor 4, original context 64 tokens, magnitude 1.139', text)
        self.assertIn('SiLU, QK norm, epsilon', text)
        self.assertIn('int8 per token: as requested', text)
        model = json.loads(self.succeeds(*words, '--json'))['model']
        self.assertEqual((model['yarn_factor'], model['qk_norms'], model['tied']), (4, True, True))
        self.assertAlmostEqual(model['rope_magnitude'], 1.138629436)

    def test_an_unknown_repair_is_exit_2(self):
        for names in ('nosuch', 'end-of-turn,nosuch', 'end-of'):
            done = self.run_program('info', '/dev/null', '--no-repair', names)
            self.assertEqual((done.returncode, done.stdout), (2, b''))
            self.assertIn(b'end-of-turn', done.stderr)

    def test_repairs_are_reported_and_switched_off(self):
        path = self.make('official.gguf', '--vocab', 'llama3-like', '--n-vocab', '2000',
                         '--official')
        notes = json.loads(self.succeeds('info', path, '--json'))['notes']
        repairs = {n['id'] for n in notes if n['kind'] == 'repair'}
        self.assertIn('pre-tokenizer', repairs)
        self.assertIn('chat-template', repairs)
        for names in ('all', 'all,', 'activation,all'):
            done = self.run_program('info', path, '--json', '--no-repair', names)
            notes = json.loads(done.stdout)['notes']
            self.assertFalse([n for n in notes if n['kind'] == 'repair'])

    def test_a_file_without_token_types_is_repaired(self):
        with open(self.make('types.gguf', '--preset', 'qwen3-tiny'), 'rb') as file:
            data = file.read()
        path = self.write('no-types.gguf', data.replace(b'tokenizer.ggml.token_type', b'tokenizer.ggml.token_kind'))
        for words, kind in (([], 'repair'), (['--no-repair', 'token-type'], 'warning')):
            notes = json.loads(self.succeeds('info', path, '--json', *words))['notes']
            self.assertEqual([n['kind'] for n in notes if n['id'] == 'token-type'], [kind])


class Text(ProgramCase):
    def test_bytes_become_ids_and_ids_bytes(self):
        text = bytes(range(1, 256)) + 'Grüße, 世界\n'.encode() + b'\0 end'
        ids = self.succeeds('tokenize', self.model, stdin=text)
        self.assertEqual(ids, (' '.join(str(b) for b in text) + '\n').encode())
        self.assertEqual(self.succeeds('detokenize', self.model, stdin=ids), text)

    def test_bos_only_when_asked(self):
        self.assertEqual(self.succeeds('tokenize', self.model, stdin=b'A'), b'65\n')
        self.assertEqual(self.succeeds('tokenize', self.model, '--bos', stdin=b'A'), b'256 65\n')
        self.assertEqual(self.succeeds('tokenize', self.model, stdin=b''), b'\n')

    def test_special_tokens_only_when_asked(self):
        shown = self.succeeds('detokenize', self.model, '--special', stdin=b'260')
        self.assertTrue(shown)
        self.assertEqual(self.succeeds('detokenize', self.model, stdin=b'260'), b'')
        self.assertEqual(self.succeeds('tokenize', self.model, '--special', stdin=shown), b'260\n')
        self.assertEqual(self.succeeds('tokenize', self.model, stdin=shown),
                         (' '.join(str(b) for b in shown) + '\n').encode())

    def test_wrong_ids_are_exit_2_with_their_offset(self):
        for ids in (b'1 2 262', b'-1', b'x', b'1 2x', b'99999999999999999999', b'1.5', b'1\0 2'):
            self.assertIn('expected an id from 0 to 261', self.fails(2, 'detokenize', self.model,
                                                                     stdin=ids))
            self.assertEqual(self.run_program('detokenize', self.model, stdin=ids).stdout, b'')
        self.assertIn('byte 4', self.fails(2, 'detokenize', self.model, stdin=b'1 2 262'))


class NoBos(ProgramCase):
    """A family whose prompts do not begin with a BOS token, and which normalises text."""
    USER = '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.make('qwen.gguf', '--arch', 'qwen3', '--vocab', 'qwen')

    def test_info_says_so(self):
        self.assertIn('no beginning-of-text token is added', self.succeeds(
            'info', self.model, '--activations', 'token').decode())
        info = json.loads(self.succeeds('info', self.model, '--activations', 'token', '--json'))
        self.assertEqual((info['tokenizer']['add_bos'], info['model']['n_vocab']), (False, 261))

    def test_prompts_and_thoughts_are_those_of_the_template(self):
        messages = '[{"role": "user", "content": "Hi"}]'
        folder = os.path.join(os.path.dirname(__file__), '../templates/published')
        published = os.path.join(folder, 'published_Qwen-Qwen3-0.6B.jinja')
        for words in ([], ['--template', published]):
            words = ['prompt', self.model, '--messages', '-', *words]
            text = self.succeeds(*words, stdin=messages.encode()).decode()
            self.assertEqual(text, self.USER + '<think>\n\n</think>\n\n')  # as the chat: off for this family
            text = self.succeeds(*words, '--think', 'on', stdin=messages.encode()).decode()
            self.assertEqual(text, self.USER)
            off = [*words, '--template-arg', 'enable_thinking=false']
            self.assertEqual(self.succeeds(*off, stdin=messages.encode()).decode(),
                             self.USER + '<think>\n\n</think>\n\n')
            ids = self.succeeds(*off, '--ids', stdin=messages.encode()).decode().split()
            self.assertEqual(ids[0], '257')
            self.assertNotIn('256', ids)
            self.assertEqual(ids[-6:], ['259', '10', '10', '260', '10', '10'])

    def test_text_is_normalised(self):
        text = 'e\u0301 \u1112\u1161\u11ab'
        ids = self.succeeds('tokenize', self.model, stdin=text.encode())
        self.assertEqual(ids, b'195 169 32 237 149 156\n')
        self.assertEqual(self.succeeds('tokenize', self.model, stdin=b'e\xff\xcc\x81'),
                         b'101 255 204 129\n')

    def test_a_window_of_perplexity_has_no_bos(self):
        text = self.write('text.txt', b'abcdef')
        line = self.succeeds('perplexity', self.model, text, '--activations', 'token').decode()
        self.assertIn('5 tokens scored', line)


class Environment(ProgramCase):
    def test_a_variable_that_a_verb_does_not_use_is_no_error(self):
        plain = self.succeeds('tokenize', self.model, stdin=b'hello')
        for name in ('OMP_NUM_THREADS', 'BITNET_CHAT_THREADS'):
            with mock.patch.dict(os.environ, {name: '2'}):
                self.assertEqual(self.succeeds('tokenize', self.model, stdin=b'hello'), plain)
        self.assertIn('--threads', self.fails(2, 'tokenize', self.model, '--threads', '2'))


class Prompt(ProgramCase):
    def prompt(self, *words, messages=HELLO):
        return self.succeeds('prompt', *words, '--messages', '-', stdin=messages.encode()).decode()

    def test_a_builtin_template_needs_no_model(self):
        self.assertEqual(self.prompt('--template', 'chatml'), CHATML)
        self.assertEqual(self.prompt('--template', 'chatml', '--no-generation-prompt'),
                         CHATML[:CHATML.rindex('<|im_start|>')])
        self.assertEqual(self.prompt('--template', 'chatml', messages='{"messages": %s}' % HELLO),
                         CHATML)

    def without_template(self, arch, vocab, **texts):
        """A model without a chat template. `texts` replaces texts of the file by others of the same length."""
        with open(self.make('whole.gguf', '--arch', arch, '--vocab', vocab), 'rb') as file:
            data = file.read().replace(b'tokenizer.chat_template', b'tokenizer.none_template')
        for old, new in texts.items():
            data = data.replace(b'<|%s|>' % old.encode(), b'<|%s|>' % new.encode())
        return self.write('without.gguf', data)

    def test_a_missing_template_is_replaced_by_the_tokens_of_the_vocabulary(self):
        llama3 = ('<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>'
                  '<|start_header_id|>assistant<|end_header_id|>\n\n')
        for arch, vocab, texts, name, expected in (
                ('bitnet-b1.58', 'bytes', {}, 'bitnet', '<|begin_of_text|>User: Hi<|eot_id|>Assistant: '),
                ('llama', 'bytes', {}, 'llama3', llama3),
                ('llama', 'qwen', {}, 'chatml', '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'),
                ('llama', 'bytes', {'eot_id': 'eod_id'}, 'plain', 'Hi'),
                ('llama', 'qwen', {'im_start': 'xx_start'}, 'plain', 'Hi'),
                ('bitnet-b1.58', 'bytes', {'eot_id': 'eod_id'}, 'plain', 'Hi')):
            model = self.without_template(arch, vocab, **texts)
            done = self.run_program('prompt', model, '--messages', '-',
                                    stdin=b'[{"role": "user", "content": "Hi"}]')
            self.assertEqual((done.returncode, done.stdout.decode()), (0, expected), (arch, vocab, texts))
            info = self.run_program('info', model).stdout.decode()
            if name == 'plain':
                self.assertIn('base model: plain text completion, not chat', info)
            else:
                self.assertIn(f"the file has no chat template: using the built-in '{name}'", info)

    def test_a_file_is_a_template(self):
        path = self.write('own.jinja', '{{ bos_token }}{% for m in messages %}[{{ m.role }}] '
                                       '{{ m.content }}{{ eos_token }}{% endfor %}{{ tail }}')
        expected = '<s>[system] Be brief.</s>[user] Hi</s>'
        self.assertEqual(self.prompt('--template', path), expected)
        self.assertEqual(self.prompt('--template', '@' + path, '--template-arg', 'tail=a "b"'),
                         expected + 'a "b"')
        self.assertEqual(self.prompt('--template', path, '--template-arg', 'tail=[1, 2]'),
                         expected + '[1, 2]')

    def test_text_is_verbatim(self):
        text = 'tab\t "quoted" \\ <|eot_id|> Grüße \u202e\u0001 \r\n end '
        path = self.write('plain.jinja', '{{ messages[0].content }}')
        messages = json.dumps([{'role': 'user', 'content': text}])
        self.assertEqual(self.prompt('--template', path, messages=messages), text)

    def test_reserved_template_arguments_are_refused(self):
        path = self.write('m.json', '[{"role": "user", "content": "x"}]')
        for arg in ('messages=[]', 'add_generation_prompt=true'):
            message = self.fails(2, 'prompt', self.model, '--messages', path, '--template-arg', arg)
            self.assertIn('is set by the program', message)
        self.succeeds('prompt', self.model, '--messages', path, '--template-arg', 'messages2=[]')

    def test_ids_are_those_of_the_tokenizer(self):
        path = self.write('ids.jinja', '{{ bos_token }}{{ messages[1].content }}')
        ids = self.prompt(self.model, '--template', path, '--ids')
        self.assertEqual(ids, '256 72 105\n')

    def test_wrong_messages_are_exit_2(self):
        for text in ('', '[', '{}', '3', '[3]', '[{"content": "x"}]', '[{"role": 1}]', '[] []',
                     '{"messages": {}}', '[{"role": "user", "content": "\udcff"}]'):
            self.fails(2, 'prompt', '--template', 'chatml', '--messages', '-',
                       stdin=text.encode(errors='surrogateescape'))

    def test_files_that_cannot_be_read_are_exit_5(self):
        messages = self.write('hello.json', HELLO)
        self.fails(5, 'prompt', '--template', 'chatml', '--messages', self.path('none.json'))
        self.fails(5, 'prompt', '--template', '@none.jinja', '--messages', messages)
        self.fails(5, 'prompt', '--template', './none.jinja', '--messages', messages)
        text = self.fails(2, 'prompt', '--template', 'none', '--messages', messages)
        self.assertIn('chatml', text)

    def test_a_template_that_does_not_parse_is_exit_2(self):
        messages = self.write('hello.json', HELLO)
        path = self.write('broken.jinja', 'one\n{% for m in %}')
        self.assertIn('line 2', self.fails(2, 'prompt', '--template', path, '--messages', messages))


class Logits(ProgramCase):
    def logits(self, model, *words, tokens=TOKENS):
        out = self.path('logits')
        self.succeeds('logits', model, '--tokens', tokens, '--out', out, *words)
        with open(out, 'rb') as file:
            return file.read()

    def test_a_row_of_the_vocabulary_for_each_token(self):
        values = array.array('f', self.logits(self.model))
        self.assertEqual(len(values), N_TOKENS * N_VOCAB)
        self.assertTrue(all(math.isfinite(v) for v in values))
        self.assertGreater(len(set(values)), N_VOCAB)

    def test_bytes_do_not_depend_on_how_they_are_computed(self):
        expected = self.logits(self.model)
        for words in (['--threads', '1'], ['--threads', '2'], ['--ubatch', '1'], ['--ubatch', '7'],
                      ['--isa', 'ref'], ['--reuse', '1'], ['--reuse', '10', '--ubatch', '3'],
                      ['--reuse', str(N_TOKENS)], ['--device', 'cpu'], ['--ctx', '200'],
                      ['--activations', 'token']):
            self.assertEqual(self.logits(self.model, *words), expected, words)

    def test_containers_of_the_same_weights_give_the_same_bytes(self):
        expected = self.logits(self.model)
        for name, words in (('tq1_0', []), ('tq2_0', []), ('f16', []), ('b', ['--i2s-layout', 'b']),
                            ('c', ['--i2s-layout', 'c'])):
            kind = ['--layout', name] if len(name) == 1 else ['--type', name]
            path = self.make(name + '.gguf', *kind)
            self.assertEqual(self.logits(path, *words), expected, name)

    def test_ids_outside_the_vocabulary_are_exit_2(self):
        self.fails(2, 'logits', self.model, '--tokens', '1,262', '--out', self.path('out'))

    def test_reuse_of_more_than_there_is_is_exit_2(self):
        message = self.fails(2, 'logits', self.model, '--tokens', '1,2,3', '--reuse', '4', '--out', self.path('out'))
        self.assertIn('--reuse 4: there are only 3 --tokens', message)
        self.assertFalse(os.path.exists(self.path('out')))

    def test_a_context_below_the_tokens_is_exit_4(self):
        message = self.fails(4, 'logits', self.model, '--tokens', '1,2,3', '--ctx', '2', '--out', self.path('out'))
        self.assertIn('--ctx 2: there are 3 --tokens', message)
        self.assertFalse(os.path.exists(self.path('out')))

    def test_a_file_that_cannot_be_written_is_exit_5(self):
        for path in (self.folder.name, self.path('no/such/folder'), '/dev/full'):
            self.fails(5, 'logits', self.model, '--tokens', TOKENS, '--out', path)

    def test_a_model_file_truncated_in_use_is_reported(self):
        fifo = self.path('waits')
        self.reports_sigbus(fifo, 'prompt', self.model, '--messages', fifo)

    def test_perplexity_agrees_with_the_logits(self):
        ids = [256] + list(b'The quick brown fox')
        values = array.array('f', self.logits(self.model, tokens=','.join(map(str, ids))))
        loss = 0.0
        for i, expected in enumerate(ids[1:]):
            row = values[i * N_VOCAB:(i + 1) * N_VOCAB]
            best = max(row)
            loss += math.log(sum(math.exp(v - best) for v in row)) + best - row[expected]
        text = self.write('fox.txt', 'The quick brown fox')
        for words in ([], ['--ctx', '20'], ['--ubatch', '3'], ['--pin']):
            line = self.succeeds('perplexity', self.model, text, *words).decode().split()
            self.assertEqual(line[0], 'perplexity')
            self.assertAlmostEqual(float(line[1]), math.exp(loss / (len(ids) - 1)), 3)
        line = self.succeeds('perplexity', self.model, text, '--ctx', '5').decode()
        self.assertIn('(19 tokens scored, windows of 5, ', line)

    def test_experts_are_counted(self):
        path = self.make('maple.gguf', '--preset', 'maple-tiny')
        text = self.write('text.txt', 'Some words about nothing in particular, and then some more of them.' * 9)
        counts = json.loads(self.succeeds('experts', path, text, '--json'))
        self.assertEqual(counts['used_experts'], 3)
        n_tokens = counts['tokens']
        self.assertGreater(n_tokens, 500)
        self.assertEqual(len(counts['layers']), 4)
        for layer in counts['layers']:
            self.assertEqual(len(layer), 8)
            self.assertEqual(sum(layer), 3 * n_tokens)
            self.assertLessEqual(max(layer), n_tokens)
        for words in (['--ubatch', '1'], ['--threads', '3', '--ubatch', '5']):
            self.assertEqual(json.loads(self.succeeds('experts', path, text, '--json', *words)), counts)
        lines = self.succeeds('experts', path, text).decode().splitlines()
        self.assertEqual(len(lines), 4)
        best = max(range(8), key=lambda e: counts['layers'][2][e])
        share = 100 * counts['layers'][2][best] / (3 * n_tokens)
        n_unused = counts['layers'][2].count(0)
        self.assertIn(f'layer   2  {n_unused} of 8 experts unused; most used: {best} ({share:.1f} %) ', lines[2])
        self.assertIn('have no experts', self.fails(2, 'experts', self.model, text))

    def test_info_shows_experts_and_the_rule_of_the_window(self):
        path = self.make('maple.gguf', '--preset', 'maple-tiny')
        text = self.succeeds('info', path).decode()
        self.assertIn('8 in a layer, 3 used by a token\n', text)
        self.assertIn('itself and 40 before it in 3 of 4 layers (rule: reference)\n', text)
        self.assertIn('32 of 64, base 500000, scale 1, only with a window\n', text)
        model = json.loads(self.succeeds('info', path, '--json', '--window-rule', 'mainline'))['model']
        self.assertEqual((model['n_experts'], model['n_used_experts']), (8, 3))
        self.assertEqual((model['window'], model['window_rule']), (40, 'mainline'))

    def test_info_shows_delta_nets_and_the_memory_of_their_states(self):
        path = self.make('hybrid.gguf', '--preset', 'qwen35-tiny')
        text = self.succeeds('info', path).decode()
        self.assertIn('in 3 layers, 4 value heads, 2 key heads, 64 elements each\n', text)
        self.assertIn('16 of 64, base 500000, scale 1\n', text)
        self.assertIn('430.1 kB\n', text)
        memory = json.loads(self.succeeds('info', path, '--json'))['memory']
        self.assertEqual((memory['chat_bytes'], memory['state_bytes']), (430080, 215040))
        self.assertEqual(memory['kv_bytes_per_token'], 512)

    def test_the_rule_of_the_window_matters_from_its_edge_on(self):
        path = self.make('maple.gguf', '--preset', 'maple-tiny')
        ids = ','.join(str(32 + i % 90) for i in range(60))
        rows = []
        for rule in ('reference', 'mainline'):
            out = self.path(f'{rule}.f32')
            self.succeeds('logits', path, '--tokens', ids, '--out', out, '--window-rule', rule)
            with open(out, 'rb') as file:
                data = file.read()
            n = len(data) // 60
            rows.append([data[i * n:(i + 1) * n] for i in range(60)])
        same = [a == b for a, b in zip(*rows)]
        self.assertEqual(same.index(False), 40)

    def test_long_work_shows_its_progress_at_a_terminal(self):
        text = self.write('long.txt', 'one two three ' * 3000)
        trained = os.path.join(os.path.dirname(__file__), 'data/trained.gguf')
        ids = ','.join(['84'] * 600)
        for words, shown in ((['perplexity', self.model, text], (b'loading', b'reading', rb'reading \d+%')),
                             (['logits', self.model, '--tokens', ids, '--out', '/dev/null', '--ctx', '700'],
                              (b'loading', b'reading')),
                             (['check', trained], (b'checking the codes', b'loading', b'checking the prediction'))):
            seen, left, output = self.progress_of(*words)
            for pattern in shown:
                self.assertRegex(seen, pattern)
            self.assertEqual((left, output), (b'', self.succeeds(*words)))

    def test_texts_without_perplexity(self):
        self.fails(2, 'perplexity', self.model, self.write('none.txt', ''))
        text = self.write('some.txt', 'some text')
        self.assertIn('--ctx 1: ', self.fails(2, 'perplexity', self.model, text, '--ctx', '1'))
        self.assertIn('windows of 2,', self.succeeds('perplexity', self.model, text, '-c', '2').decode())
        self.fails(5, 'perplexity', self.model, self.path('missing.txt'))
        self.fails(5, 'perplexity', self.model, self.folder.name)


class Check(ProgramCase):
    def test_random_weights_of_a_vocabulary_of_bytes_are_not_judged(self):
        text = self.succeeds('check', self.model).decode()
        for part in ('structure', 'codes', 'numbers', 'kernels', 'text', 'device'):
            self.assertRegex(text, f'(?m)^ok +{part} ')
        self.assertRegex(text, '(?m)^ok +prediction +not judged: its vocabulary has no tokens for English words$')
        self.assertRegex(text, r'(?m)^ok +codes +\d+ ternary tensors, \d+ weights, \d+\.\d % of them zero$')

    def test_a_gap_behind_a_tensor_is_a_warning(self):
        path = self.make('gaps.gguf', '--preset', 'qwen3-tiny')
        self.assertNotIn(' gaps ', self.succeeds('check', path).decode())
        with open(path, 'rb') as file:
            data = bytearray(file.read())
        for name in ('blk.0.attn_q.weight', 'blk.1.attn_q.weight'):  # PQ2_0, 34 bytes for 128 weights, not 18
            struct.pack_into('<I', data, gguf_edit.TensorInfo(data, name).type_at, 41)
        self.assertRegex(self.succeeds('check', self.write('q1_0.gguf', bytes(data))).decode(),
                         r'(?m)^warning +gaps +unused room behind tensors: 2, the first of 4096 bytes behind '
                         r"'blk.0.attn_q.weight' \(Q1_0\); ")

    def test_bytes_behind_the_last_tensor_have_a_warning_of_their_own(self):
        with open(self.model, 'rb') as file:
            data = file.read()
        text = self.succeeds('check', self.write('longer.gguf', data + bytes(64))).decode()
        self.assertRegex(text, '(?m)^warning +gaps +the file has 64 bytes behind the last tensor, '
                               r"'output_norm.weight' \(F32\); they were added, or the type of this tensor is wrong$")
        self.assertNotIn('unused room', text)
        self.assertNotIn(' gaps ', self.succeeds('check', self.write('padded.gguf', data + bytes(31))).decode())

    def test_a_vocabulary_of_equal_tokens_is_not_judged(self):
        with open(self.model, 'rb') as file:
            data = bytearray(file.read())
        at = gguf_edit.items_at(data, 'tokenizer.ggml.tokens')
        for _ in range(256):
            n_bytes, = struct.unpack_from('<Q', data, at)
            data[at + 8:at + 8 + n_bytes] = b'a' if n_bytes == 1 else 'é'.encode()
            at += 8 + n_bytes
        path = self.write('equal.gguf', bytes(data))
        self.assertEqual(self.succeeds('tokenize', path, stdin=b'Saturday'), b'33 33\n')
        self.assertRegex(self.succeeds('check', path).decode(), '(?m)^ok +prediction +not judged: ')

    def test_a_trained_model_predicts_text_and_its_layout_is_found(self):
        trained = os.path.join(os.path.dirname(__file__), 'data/trained.gguf')
        self.assertRegex(self.succeeds('check', trained).decode(),
                         r'(?m)^ok +prediction +the model predicts text: 0\.\d\d nats per token on a short text; '
                         r'word frequencies have 1\.50$')
        for layout in 'bc':
            text = self.succeeds('check', '--i2s-layout', layout, trained).decode()
            self.assertRegex(text, r'(?m)^warning +prediction +the model does not predict text: \d')
            self.assertRegex(text, r'(?m)^warning +layout +--i2s-layout a predicts text: 0\.')
            self.assertEqual(text.count('--i2s-layout'), 1)

    def trained_with_other_rows(self):
        """The trained model with feed-forward layers of 638 rows, which layout c cannot hold. It predicts nonsense."""
        with open(os.path.join(os.path.dirname(__file__), 'data/trained.gguf'), 'rb') as file:
            data = bytearray(file.read())
        struct.pack_into('<I', data, gguf_edit.value_at(data, 'bitnet-b1.58.feed_forward_length'), 638)
        names = re.findall(rb'blk\.\d+\.[a-z_]+\.weight|token_embd\.weight|output_norm\.weight', data)
        infos = [gguf_edit.TensorInfo(data, name.decode()) for name in names]
        start = -(-max(info.end for info in infos) // gguf_edit.ALIGNMENT) * gguf_edit.ALIGNMENT  # of the tensor data
        for info in infos:
            if 640 in info.dims:
                dims = [638 if n == 640 else n for n in info.dims]
                struct.pack_into(f'<{len(dims)}Q', data, info.dims_at, *dims)
                if len(dims) == 2:  # I2_S: the scale is behind the codes, of which a byte has four
                    struct.pack_into('<f', data, start + info.offset + 638 * 256 // 4, 1)
        return self.write('rows.gguf', bytes(data))

    def test_a_layout_that_cannot_hold_the_model_is_not_tried(self):
        text = self.succeeds('check', self.trained_with_other_rows()).decode()
        self.assertRegex(text, r'(?m)^warning +prediction +the model does not predict text: \d')
        self.assertNotIn('--i2s-layout', text)

    def test_warnings_about_the_model_are_printed(self):
        path = self.make('extra.gguf', '--arch', 'llama', '--extra', 'blk.1.post_ffw_norm.weight')
        text = self.succeeds('check', path, '--ignore-tensor', 'blk.1.post_ffw_norm.weight').decode()
        self.assertRegex(text, r"(?m)^warning +ignored-tensors +.*'blk\.1\.post_ffw_norm\.weight'")
        self.assertNotIn('unmatched-tensors', text)
        for name in ('blk.1.no_such_norm.weight', 'token_embd.weight'):
            text = self.succeeds('check', self.model, '--ignore-tensor', name).decode()
            self.assertRegex(text, rf"(?m)^warning +unmatched-tensors +--ignore-tensor '{name}' has no effect")

    def test_binary_weights_are_called_binary(self):
        words = ('--preset', 'qwen3-tiny', '--type', 'q1_0')
        path = self.make('binary.gguf', *words, '--head', 'q1_0')
        self.assertRegex(self.succeeds('check', path).decode(), r'(?m)^ok +codes +15 binary tensors, \d+ weights')
        path = self.make('mixed.gguf', *words)
        self.assertRegex(self.succeeds('check', path).decode(),
                         r'(?m)^ok +codes +14 binary and 1 ternary tensors, \d+ weights, \d')

    def test_an_invalid_code_names_its_tensor(self):
        with open(self.model, 'rb') as file:
            data = bytearray(file.read())
        output_norm_bytes = 256 * 4  # the last tensor; the one before it has ternary codes, then 32 bytes of its scale
        data[-output_norm_bytes - 32 - 1] = 0xff  # four codes 3
        path = self.write('flipped.gguf', bytes(data))
        self.assertIn("tensor 'blk.1.ffn_down.weight': ", self.fails(3, 'check', path))


if __name__ == '__main__':
    main()
