#!/usr/bin/env python3
"""
test_refused.py CHAT MAKE_MODEL MODELS.md: models that bitnet-chat refuses, and files that are no models.
Each gives one line, and all rows of the table "Refused" in docs/models.md are named by some line.
"""
import errno
import os
import re
import struct
import sys

from support import gguf_edit
from support.program_case import ProgramCase, main

DOCUMENT = sys.argv.pop(3)


class Refused(ProgramCase):
    def refusal(self, path):
        """The line about this model. It names the file once."""
        line = self.fails(3, '-p', 'hi', '-m', path)
        self.assertEqual(line.count(os.path.basename(path)), 1, line)
        return line

    def with_architecture(self, name):
        """The tiny model with another architecture; the model's name gives or takes the difference in length."""
        with open(self.model, 'rb') as file:
            data = file.read()
        for old, new in (('bitnet-b1.58', name), ('synthetic-tiny', 'x' * (26 - len(name)))):
            self.assertIn(gguf_edit.string(old), data)
            data = data.replace(gguf_edit.string(old), gguf_edit.string(new), 1)
        return self.write(name + '.gguf', data)

    def with_type(self, number, *args, tensor='blk.0.attn_q.weight'):
        """A model in which this tensor has this type id."""
        path = self.make('typed.gguf', *args)
        with open(path, 'rb') as file:
            data = bytearray(file.read())
        struct.pack_into('<I', data, gguf_edit.TensorInfo(data, tensor).type_at, number)
        return self.write(f'type-{number}.gguf', bytes(data))

    def dense(self):
        """An f16 model with two neighbours in a weight matrix that no ternary matrix with one scale can hold."""
        path = self.make('dense.gguf', '--type', 'f16')
        with open(path, 'rb') as file:
            data = file.read()
        middle = len(data) // 2 & ~1
        return self.write('dense.gguf', data[:middle] + b'\x01\x31\x02\x32' + data[middle + 4:])

    def refused_models(self):
        """Pairs of a model's path and the row that its message must name."""
        folder = self.path('published')
        os.makedirs(folder)
        for name in ('config.json', 'model.safetensors'):
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(struct.pack('<Q', 2) + b'{}')
        yield folder, 'Safetensors and PyTorch files'
        yield os.path.join(folder, 'model.safetensors'), 'Safetensors and PyTorch files'
        yield self.write('pytorch_model.bin', b'PK\x03\x04 and more'), 'Safetensors and PyTorch files'
        yield self.with_architecture('hunyuan-dense'), 'Hunyuan (STQ1_0)'
        yield self.with_architecture('gemma3'), 'Other architectures'
        yield (self.write('old.gguf', b'GGUF' + struct.pack('<IQQ', 1, 0, 0) + bytes(64)),
               'GGUF version 1 and big-endian files')
        yield self.with_type(38), 'TL1 and TL2 files'
        yield self.with_type(39), 'TL1 and TL2 files'
        yield self.with_type(142), 'Old ik_llama.cpp files'
        yield self.with_type(12, '--arch', 'llama', '--type', 'f32'), 'Models that are not ternary'
        yield (self.with_type(10, '--arch', 'llama', '--type', 'f32', tensor='token_embd.weight'),
               'Models that are not ternary')
        for number in (10, 13, 36, 135):  # Q2_K, Q5_K, I2_S, IQ2_BN
            yield self.with_type(number, tensor='token_embd.weight'), 'Embeddings in other types'
        yield self.dense(), 'Models that are not ternary'
        yield (self.make('norm_in.gguf', '--extra', 'blk.0.norm_in.weight'), 'BitNet embeddings')
        yield (self.make('other.gguf', '--extra', 'blk.0.ffn_new.weight'), 'Other architectures')

    def base_model(self, path):
        """The file without a chat template, and without the token by which a built-in one is chosen."""
        with open(path, 'rb') as file:
            data = file.read()
        for old, new in ((b'tokenizer.chat_template', b'tokenizer.none_template'), (b'<|eot_id|>', b'<|eod_id|>')):
            self.assertIn(old, data)
            data = data.replace(old, new)
        return self.write('base.gguf', data)

    def test_a_base_model_that_cannot_run_has_one_line_with_its_path(self):
        path = self.base_model(self.with_type(39))
        self.assertTrue(self.refusal(path).startswith(f"bitnet-chat: {path}: tensor 'blk.0"), self.refusal(path))
        done = self.run_program('-v', '-p', 'hi', '-m', path)
        self.assertIn(b'base model: plain text completion', done.stderr)  # explains how the file was read

    def test_each_line_names_its_row(self):
        named = set()
        for path, row in self.refused_models():
            line = self.refusal(path)
            self.assertEqual(line.count(path), 1, line)
            self.assertTrue(line.endswith(f": see models.md of the documentation, row '{row}'\n"), line)
            self.assertLess(len(line), 600)
            named.add(row)
        with open(DOCUMENT, encoding='utf-8') as file:
            table = file.read().split('\n## Refused\n')[1].split('\n## ')[0]
        rows = set(re.findall(r'^\| (?!Row)(.*?) \|', table, re.M))
        self.assertEqual(named, rows)

    def test_files_that_are_no_models_are_explained(self):
        for name, data, words in (
                ('page.gguf', '<!doctype html><html><title>Hugging Face</title>', 'a web page (HTML)'),
                ('lfs.gguf', 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n',
                 "a Git LFS pointer, a text of 64 bytes in its place: run 'git lfs pull'"),
                ('text.gguf', 'hello\n', "does not begin with 'GGUF'")):
            self.assertIn(words, self.refusal(self.write(name, data)))

    def test_every_fault_of_a_file_names_it_once(self):
        def part(number, count):
            return gguf_edit.with_keys(data, ('split.count', gguf_edit.I32, count), ('split.no', gguf_edit.I32, number))

        with open(self.model, 'rb') as file:
            data = file.read()
        swapped = bytearray(data)
        tensor = gguf_edit.TensorInfo(data, 'blk.1.ffn_down.weight')
        struct.pack_into('<2Q', swapped, tensor.dims_at, *reversed(tensor.dims))
        for name, changed, words in (
                ('empty.gguf', b'', 'is empty'),
                ('cut.gguf', data[:-5000], 'the file is truncated or damaged'),
                ('keys.gguf', data[:200], 'the file is truncated or damaged'),
                ('no-arch.gguf', data.replace(b'general.architecture', b'general.arch1tecture'),
                 'no key general.architecture'),
                ('no-key.gguf', data.replace(b'.context_length', b'.c0ntext_length'), 'context_length'),
                ('no-tokens.gguf', data.replace(b'tokenizer.ggml.tokens', b'tokenizer.ggml.t0kens'), "ggml.tokens'"),
                ('swapped.gguf', swapped, "'blk.1.ffn_down.weight' is 768 x 256"),
                ('part-00001-of-00003.gguf', part(4, 3), 'split.no')):
            self.assertIn(words, self.refusal(self.write(name, bytes(changed))))
        self.assertIn('No such file', self.refusal(self.path('absent.gguf')))
        if os.path.exists('/proc/self/maps'):
            self.assertIn('is a file of the system without a size', self.refusal('/proc/self/maps'))
        try:  # nothing is mapped at address 0, so Linux cannot read there
            with open('/proc/self/mem', 'rb', buffering=0) as file:
                file.read(1)
        except OSError as error:
            if error.errno == errno.EIO:
                self.assertIn("'/proc/self/mem': Input/output error", self.refusal('/proc/self/mem'))
        path = self.write('first-00001-of-00002.gguf', part(0, 2))
        self.assertIn('first-00002-of-00002.gguf', self.fails(3, '-p', 'hi', '-m', path))

    def test_a_directory_with_models_names_one(self):
        folder = self.path('models')
        os.makedirs(folder)
        for name in ('b.gguf', 'a.gguf', 'a.safetensors'):
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(b'GGUF')
        self.assertIn('is a directory; name a file in it, for example a.gguf', self.refusal(folder))


if __name__ == '__main__':
    main()
