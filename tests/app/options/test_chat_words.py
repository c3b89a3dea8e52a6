#!/usr/bin/env python3
"""
test_chat_words.py CHAT MAKE_MODEL: the command line of bitnet-chat: which words are a model, wrong values, the help and
the completions. With a scripted generator.
"""
import os
import re
import shlex
import shutil
import subprocess

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main


class Words(ChatCase):
    """Which words are a model, and which values are refused."""

    def run_words(self, *words):
        return subprocess.run([PROGRAM, *words], env=self.env, capture_output=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)

    def test_the_first_word_is_the_model_if_it_names_one(self):
        """That is, if it ends in .gguf or names a file, also if the environment names another model."""
        self.fake('ok')
        self.env['BITNET_CHAT_MODEL'] = self.model
        other = os.path.join(self.home.name, 'other model')
        shutil.copy(self.model, other)
        for words in (('big.GGUF',), ('models/big.gguf', 'why?'), (self.folder.name,)):
            done = self.run_words(*words)
            self.assertEqual((done.returncode, done.stdout), (3, b''), (words, done.stderr))
            self.assertIn(words[0].encode(), done.stderr)
            self.assertEqual(done.stderr.count(b'\n'), 1)
        for word in (other, '~/other model'):
            self.assertIn(b'other model', self.run_words(word, '--info', '--json').stdout)
        for words in (('why?',), ('is and/or one word?',), ('what', 'is', 'a/b'), ('-p', 'a/b'), ('--', 'why?'),
                      ('-m', self.model, 'a/b')):
            done = self.run_words(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'ok\n', b''), words)

    def test_a_word_with_a_slash_that_names_no_file_is_a_prompt_with_a_warning(self):
        self.fake('ok')
        self.env['BITNET_CHAT_MODEL'] = self.model
        for words in (('yes/no?',), ('models/big',), ('./big', 'why?'), ('/models/big.bin',), ('~/big',)):
            done = self.run_words(*words)
            self.assertEqual((done.returncode, done.stdout), (0, b'ok\n'), (words, done.stderr))
            self.assertEqual(done.stderr.decode(), f"bitnet-chat: warning: there is no file '{words[0]}', so it is the "
                                                   "prompt; -m names a model\n")
            self.assertEqual(self.run_words('-q', *words).stderr, done.stderr)  # another model answers

    def test_a_model_behind_the_first_word_is_part_of_the_prompt_with_a_warning(self):
        self.fake('ok')
        self.env['BITNET_CHAT_MODEL'] = self.model
        folder = os.path.join(self.home.name, 'models')
        os.mkdir(folder)
        a, b = os.path.join(folder, 'a.gguf'), os.path.join(folder, 'B.GGUF')
        for name in (a, b):
            shutil.copy(self.model, name)
        for words, said in ((('hi', b), b), ((a, b, 'hi'), b), ((a, 'hi', a, b), a), (('-p', 'hi', 'why', a), a)):
            warning = f"bitnet-chat: warning: '{said}' is part of the prompt; -m names a model\n".encode()
            for more in ((), ('-q',)):  # another model answers
                done = self.run_words(*more, *words)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'ok\n', warning), words)
        other = os.path.join(folder, 'a.txt')
        shutil.copy(self.model, other)
        for words in (('hi', 'no/model.gguf'), ('hi', other), ('-m', a, 'hi', b), ('-p', b), ('hi', f'or {b}'),
                      (a, 'hi')):
            done = self.run_words(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'ok\n', b''), words)

    def test_a_long_name_with_one_dash_is_refused(self):
        """Otherwise -seed would be -s with the text "eed"."""
        for words in (('-seed', '5', 'hi'), ('-session', 'trip', 'hi'), ('-prompt', 'hi'), ('-no-stream', '-p', 'hi'),
                      ('-q', '-version'), ('-temp=0', '-p', 'hi'), ('-help',)):
            name = next(word for word in words if len(word) > 2).partition('=')[0]
            self.assertEqual(self.refuses(2, *words), f'bitnet-chat: unknown option {name} (did you mean -{name}?)\n')
        self.fake('ok')
        for words in (('-s', 'seed', '-phi'), ('-sSeed', '-n5', '-p', 'hi'), ('-p', '-seed'), ('--', '-seed')):
            self.assertEqual(self.says(*words), b'ok\n', words)

    def test_a_mistyped_option_is_refused_with_the_one_that_is_meant(self):
        for word, meant in (('temprature', 'temp'), ('nostream', 'no-stream'), ('nocolor', 'color never'),
                            ('num-predict', 'max-tokens'), ('thinking-budget', 'think-budget')):
            self.assertEqual(self.refuses(2, f'--{word}', '1', 'hi'),
                             f'bitnet-chat: unknown option --{word} (did you mean --{meant}?)\n')

    def test_a_session_name_has_no_slash(self):
        self.fake('ok')
        os.makedirs(self.path('a'), exist_ok=True)
        for name in ('a/b', './b', self.path('a/b'), '/b'):
            self.assertIn('a name has no slash', self.refuses(2, '--session', name, '-p', 'x'))
        self.assertEqual(os.listdir(self.path('a')), [])
        self.says('--session', self.path('a/b.json'), '-p', 'x')
        self.says('--session', 'b', '-p', 'x')

    def test_absurd_numbers_of_threads_are_refused(self):
        most = max(64, 4 * os.sysconf('SC_NPROCESSORS_ONLN'))
        self.fake('ok')
        self.assertEqual(self.says('-t', str(most), '-p', 'x'), b'ok\n')
        for number in (str(most + 1), '99999999999999999999', '-1', 'x', ''):
            self.assertIn(f'expected a whole number from 0 to {most}\n', self.refuses(2, '-t', number, '-p', 'x'))
        self.env['BITNET_CHAT_THREADS'] = str(most + 1)
        self.assertIn('BITNET_CHAT_THREADS', self.refuses(2, '-p', 'x'))

    def test_a_word_that_is_nearly_a_model_file_is_a_warning(self):
        folder = os.path.join(self.home.name, 'models')
        os.mkdir(folder)
        for name in ('q3s.gguf', 'helper.gguf', 'notes.txt'):
            with open(os.path.join(folder, name), 'wb'):
                pass

        def said(*words):
            done = subprocess.run([PROGRAM, *words], cwd=folder, env=self.env, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=True)
            return done.stderr.decode().partition('; ')[2].partition('\n')[0]
        self.env['BITNET_CHAT_MODEL'] = self.model
        for word, model in (('q3s', 'q3s'), ('q3s.ggu', 'q3s'), ('q3S', 'q3s'), ('q2s', 'q3s'), ('helper', 'helper')):
            for words in ((word, 'hi'), ('-q', word, 'hi')):
                self.assertEqual(said(*words), f'did you mean the model {model}.gguf?', words)
        for words in (('hello', 'hi'), ('helpers', 'hi'), ('q3s is a word',), ('-m', self.model, 'q3s'), ('-p', 'q3s')):
            self.assertEqual(said(*words), '', words)

    def test_an_empty_first_word_is_refused(self):
        self.fake('ok')
        for words in (('',), ('', 'hi'), ('-q', '', 'hi')):
            done = self.run_words(*words)
            self.assertEqual((done.returncode, done.stdout), (2, b''), words)
            self.assertEqual(done.stderr, b'bitnet-chat: the first word is empty: expected a model or a prompt\n')
        self.assertEqual(self.run_words('-m', self.model, '', 'hi').stdout, b'ok\n')


class Tables(ChatCase):
    def listed(self, *words):
        done = subprocess.run([PROGRAM, *words], env=self.env, capture_output=True, timeout=60,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        return done.stdout.decode()

    def test_help_and_completions_name_the_same_options(self):
        names = set(re.findall(r'(?m)^ +(?:-\w, )?(--[a-z0-9-]+)', self.listed('--help', 'all')))
        self.assertGreater(len(names), 40)
        bash = self.listed('--completion', 'bash')
        words = re.search(r"-\* \]\]; then\n +COMPREPLY=\(\$\(compgen -W '([^']*)'", bash)
        self.assertEqual(set(words.group(1).split()), names)
        zsh = self.listed('--completion', 'zsh')
        specs = re.findall(r"(?m)^  (.*?--[a-z0-9-]+)=?(?:}')?\[", zsh)
        self.assertEqual({spec[spec.rindex('--'):] for spec in specs}, names)
        self.assertIn("(-m --model)'{-m+,--model", specs[0])
        self.assertIn("'*'{-f+,--file", specs)
        fish = self.listed('--completion', 'fish')
        self.assertEqual({'--' + n for n in re.findall(r'(?m)^complete -c bitnet-chat -l (\S+)', fish)},
                         names)
        done = subprocess.run(['bash', '-n'], input=bash.encode(), stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))

    def test_bash_completes_values_and_file_names_with_blanks(self):
        script = self.listed('--completion', 'bash')
        with open(os.path.join(self.home.name, 'my [1] model.gguf'), 'w', encoding='utf-8'):
            pass

        def completed(*words):
            line = ' '.join(map(shlex.quote, words))
            ask = f'COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}; _bitnet_chat; printf "%s\\n" "${{COMPREPLY[@]}}"'
            done = subprocess.run(['bash', '-c', script + ask], cwd=self.home.name, env=self.env,
                                  capture_output=True, check=True)
            self.assertEqual(done.stderr, b'')
            return done.stdout.decode().splitlines()
        for words in (('--head', 'q'), ('--head', '=', 'q')):
            self.assertEqual(completed('bitnet-chat', *words), ['q8'])
        self.assertEqual(completed('bitnet-chat', '--ui', '='), ['inline', 'full'])
        self.assertEqual(completed('bitnet-chat', 'my'), ['my [1] model.gguf'])
        self.assertEqual(completed('bitnet-chat', '--model', '=', 'my'), ['my [1] model.gguf'])
        self.assertEqual(completed('bitnet-chat', '--no-ch'), ['--no-check'])
        self.assertEqual(completed('bitnet-chat', '--device', 'c'), ['cpu', 'cuda'])
        self.assertEqual(completed('bitnet-chat', '--batch', ''), ['auto'])
        self.assertEqual(completed('bitnet-chat', '--template', ''), self.templates())
        self.assertEqual(completed('bitnet-chat', '--template', 'my'), ['my [1] model.gguf'])
        self.chat('-i', stdin=b'x\n/save my trip\n/save my walk\n')
        for option in ('--session', '--load'):
            self.assertEqual(completed(PROGRAM, option, ''), ['my trip', 'my walk'])
            self.assertEqual(completed(PROGRAM, option, '=', 'my t'), ['my trip'])
            self.assertEqual(completed(PROGRAM, option, 'my ['), ['my [1] model.gguf'])

    def test_zsh_and_fish_complete_files_for_paths_and_saved_chats_by_name(self):
        zsh = dict(re.findall(r'(?m)--([a-z0-9-]+)=(?:}\')?\[.*\](:.*)\' \\$', self.listed('--completion', 'zsh')))
        fish = dict(re.findall(r'(?m)-l ([a-z0-9-]+)(.*)$', self.listed('--completion', 'fish')))
        for name in ('session', 'load'):
            self.assertEqual(zsh[name], ':value:_bitnet_chat_saved')
            self.assertIn(" -r -a '(bitnet-chat --list-sessions 2>/dev/null)'", fish[name])
        for name in ('model', 'file', 'log'):
            self.assertEqual(zsh[name], ':value:_files')
        for name in ('stop', 'prompt', 'logit-bias'):
            self.assertEqual(zsh[name], ':value:')
            self.assertIn(' -x ', fish[name])
        for name, words in (('device', 'auto cpu cuda'), ('batch', 'auto'), ('state-memory', 'auto')):
            self.assertEqual(zsh[name], f':value:({words})')
            self.assertIn(f" -x -a '{words}'", fish[name])
        self.assertEqual(zsh['template'], f':value:{{compadd {" ".join(self.templates())}; _files}}')
        self.assertIn(f" -r -a '{' '.join(self.templates())}'", fish['template'])

    def templates(self):
        """The names that --template accepts, from its error."""
        return re.search(r'template \((.*)\)$', self.refuses(2, '--template', 'none', '-p', 'x')).group(1).split(', ')

    def test_help_of_one_option(self):
        text = self.listed('--help', 'top-k')
        self.assertRegex(text, r'^\nSampling:\n +--top-k N +[^\n]+\n$')
        self.assertEqual(self.listed('top_k', '-h'), text)
        for words in (('model.gguf',), ('why is the sky blue',), ('why', 'me')):
            self.assertEqual(self.listed('--help', *words), self.listed('--help'))

    def test_help_of_an_option_that_does_not_exist_is_an_error(self):
        for word, hint in (('tmep', 'did you mean --temp?'), ('no-wrp', 'did you mean --no-wrap?'),
                           ('xyzzy', '--help all lists them')):
            done = subprocess.run([PROGRAM, '--help', word], env=self.env, capture_output=True, text=True, check=False)
            said = f'bitnet-chat: there is no option --{word} ({hint})\n'
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, '', said))

    def test_help_names_the_files_and_the_negated_options(self):
        text = self.listed('--help')
        self.assertIn(os.path.join(self.home.name, '.config/bitnet-chat/config'), text)
        self.assertIn('.local/state/bitnet-chat/last.json (not with --private)', text)
        self.assertRegex(text, '--no-wrap +do not break lines')
        for shell in ('zsh', 'fish'):
            self.assertIn('do not break lines', self.listed('--completion', shell))

    def test_short_help_fits_a_screen_and_version_is_a_line(self):
        head = re.search(r'(?s)--head .*?\n +--kv', self.listed('--help', 'all')).group()
        self.assertRegex(head, r'q8: approximate, reads\s+more\s+than\s+exact')
        self.assertLess(self.listed('--help').count('\n'), 65)
        self.assertRegex(self.listed('--version'), r'^bitnet-chat \d+\.\d+\.\d+\n$')


if __name__ == '__main__':
    main()
