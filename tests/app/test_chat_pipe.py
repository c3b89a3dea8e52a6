#!/usr/bin/env python3
"""
test_chat_pipe.py CHAT MAKE_MODEL: bitnet-chat in scripts: pipes, formats, exit codes and files. With a scripted
generator.
"""
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import termios
import time

from support.chat_case import ChatCase
from support.idle import sleeps, wait_until_quiet
from support.program_case import PROGRAM, main

FIELDS = {'model', 'text', 'thought', 'finish', 'seed', 'settings', 'prompt_tokens', 'reused_tokens', 'drafted_tokens',
          'accepted_tokens',
          'evaluated_tokens', 'completion_tokens', 'prefill_tokens_per_s', 'decode_tokens_per_s',
          'first_token_s', 'token_gap_p50_s', 'token_gap_p95_s', 'token_gap_p99_s', 'dropped_turns',
          'reevaluated_tokens', 'saved_states', 'saved_state_bytes'}


class Messages(ChatCase):
    def written(self, *words, stdin=b''):
        """Run the program. Returns what it wrote to standard error, as a list with the bytes of each write."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the writes apart
        with ours:
            with its:
                subprocess.run([PROGRAM, self.model, *words], input=stdin, stdout=subprocess.DEVNULL, stderr=its,
                               env=self.env, timeout=60, check=False)
            return list(iter(lambda: ours.recv(65536).decode(), ''))

    def test_each_line_on_standard_error_is_one_write(self):
        """Else the lines of programs that run at the same time are mixed."""
        self.fake('ok', n_ctx=200)
        for words, stdin, patterns in (
                (('--temprature', '1'), b'', (r'bitnet-chat\S*: .*unknown.*',)),
                (('--file', self.path('missing'), 'x'), b'', (r'bitnet-chat\S*: .*missing.*',)),
                (('--no-check', '--stats', 'x'), b'', (r'\[\d+ tok.*',)),
                (('--no-check', '--lines', '--stats', '--keep-going'), b'x\n' + 300 * b'y' + b'\nz\n',
                 (r'bitnet-chat\S*: line 2: .*', r'\[\d+ tok.*')),
                (('-i', '--no-check'), b'/set temp 0\nx\n/nope\n',
                 (r'temp = 0', r'bitnet-chat: unknown command /nope.*'))):
            lines = self.written(*words, stdin=stdin)
            self.assertEqual([line for line in lines if not re.fullmatch(r'[^\n]+\n', line)], [], words)
            for pattern in patterns:
                self.assertRegex(''.join(lines), f'(?m)^{pattern}$')


class Prompts(ChatCase):
    def test_whole_stdin_is_one_prompt_and_commands_are_text(self):
        self.fake('The answer.')
        self.assertEqual(self.says(stdin=b'/quit\nline two\n'), b'The answer.\n')
        # The prompt is the whole input: with a byte vocabulary, one more byte is one more token.
        count = [json.loads(self.says('--json', stdin=text))['prompt_tokens']
                 for text in (b'/quit', b'/quit\nx')]
        self.assertEqual(count[1] - count[0], 2)

    def test_a_document_on_stdin_goes_before_the_prompt(self):
        self.fake('ok')
        alone = json.loads(self.says('--json', '-p', 'why?', stdin=b''))['prompt_tokens']
        both = json.loads(self.says('--json', '-p', 'why?', stdin=b'text\n'))['prompt_tokens']
        self.assertEqual(both - alone, len('text\n\n'))

    def test_words_after_the_model_are_the_prompt(self):
        self.fake('ok')
        one = self.says('--json', 'two', 'words')
        other = self.says('--json', '--prompt', 'two words')
        self.assertEqual(json.loads(one)['prompt_tokens'], json.loads(other)['prompt_tokens'])

    def test_an_empty_prompt_is_exit_2(self):
        for stdin in (b'', b' \n\t\n', subprocess.DEVNULL):
            self.assertIn('empty prompt', self.refuses(2, stdin=stdin))
        self.assertIn('empty prompt', self.refuses(2, '--lines', stdin=b'\n\n'))

    def test_an_empty_prompt_does_not_wait_for_stdin(self):
        for words in (['-p', ''], ['']):
            with subprocess.Popen([PROGRAM, self.model, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=self.env) as process:
                self.assertEqual(process.wait(timeout=60), 2)
                self.assertIn(b'empty prompt', process.stderr.read())

    def test_a_prompt_does_not_wait_for_a_silent_stdin(self):
        self.fake('ok')
        read, write = os.pipe()
        done = self.chat('-q', '-p', 'hi', stdin=read)  # standard input stays open without data
        os.close(read)
        os.close(write)
        self.assertEqual((done.returncode, done.stdout), (0, b'ok\n'))
        self.assertIn(b'nothing came from standard input', done.stderr)

    def test_a_byte_order_mark_is_no_part_of_the_prompt(self):
        self.fake('ok')
        sizes = {json.loads(self.says('--json', *words, stdin=stdin))['prompt_tokens']
                 for words in ((), ('--lines',)) for stdin in (b'abc\n', b'\xef\xbb\xbfabc\n')}
        self.assertEqual(len(sizes), 1)

    def test_nul_is_refused_and_broken_utf8_replaced(self):
        with open(self.path('latin1'), 'wb') as file:
            file.write(b'caf\xe9')
        self.assertIn('not valid UTF-8 at offset 3', self.refuses(2, '-s', '@' + self.path('latin1'), '-p', 'x'))
        self.assertIn('NUL byte at offset 1', self.refuses(2, stdin=b'a\0b'))
        self.fake('ok')
        done = self.chat(stdin=b'ab\xffcd')
        self.assertEqual((done.returncode, done.stdout), (0, b'ok\n'))
        self.assertIn(b'offset 2', done.stderr)

    def test_invalid_utf8_of_every_source_is_a_warning(self):
        self.fake('ok')
        for words, stdin, name in (((), b'x\xff', 'standard input'), (('--lines',), b'a\nx\xff\n', 'line 2'),
                                   (('-i',), b'a\nx\xff\n', 'line 2'), ((b'x\xff',), b'', 'the prompt'),
                                   (('-p', b'x\xff'), b'', 'the prompt'),
                                   (('-s', b'x\xff', '-p', 'x'), b'', 'the system message')):
            done = self.chat(*words, stdin=stdin)
            self.assertEqual((done.returncode, done.stderr.decode()), (
                0, f'bitnet-chat: warning: {name} is not valid UTF-8 at offset 1: replaced by U+FFFD\n'), words)
            self.says('-q', *words, stdin=stdin)

    def test_a_template_that_leaves_out_a_message_is_a_warning(self):
        self.fake('ok', 'ok')
        warning = 'bitnet-chat: warning: the chat template leaves out {}, so the model does not see it\n'.format
        said = {'question': warning('your message'), 'system': warning('the system message')}
        for text, missing in (('static', ('question', 'system')), ('{{ messages[0].content }}', ('question',)),
                              ('{{ messages[-1].content | upper }}', ('system',)),
                              ('{% for m in messages %}{{ m.content[:1] }}{% endfor %}', ())):
            template = '@' + self.write('leaves.jinja', text)
            done = self.chat('--template', template, '-s', 'Be brief.', '--lines', stdin=b'one\ntwo\n')
            self.assertEqual((done.returncode, done.stderr.decode()),
                             (0, ''.join(said[name] for name in missing)), text)
            self.says('-q', '--template', template, '-s', 'Be brief.', '-p', 'why?')

    def test_carriage_returns_at_line_ends_are_removed(self):
        self.fake('ok')
        counts = {json.loads(self.says('--json', stdin=text))['prompt_tokens']
                  for text in (b'a\nb', b'a\r\nb', b'a\r\nb\r\n', b'a\nb\n')}
        self.assertEqual(len(counts), 1)

    def test_an_attached_file_is_named_and_fenced(self):
        self.fake('ok', 'ok')
        path = self.write('note.txt', 'x ```` y')
        session = self.path('attached.json')
        self.says('-f', path, '-p', 'what is it?', '--session', session)
        with open(session, encoding='utf-8') as file:
            content = json.load(file)['messages'][0]['content']
        self.assertEqual(content, 'File note.txt:\n`````\nx ```` y\n`````\n\nwhat is it?')
        self.refuses(5, '-f', self.path('missing'), '-p', 'x')

    def test_a_file_alone_is_the_prompt_as_standard_input_is(self):
        self.fake('ok')

        def content(*words, stdin=b''):
            session = self.path('alone.json')
            self.says(*words, '--session', session, stdin=stdin)
            with open(session, encoding='utf-8') as file:
                said = json.load(file)['messages'][0]['content']
            os.unlink(session)
            return said
        text = 'Write a poem\r\nabout ``` fences.\n'
        path, other, blank = self.write('p.txt', text), self.write('q.txt', 'x'), self.write('blank.txt', ' \n')
        self.assertEqual(content('-f', path), 'Write a poem\nabout ``` fences.')
        self.assertEqual(content('-f', path), content(stdin=text.encode()))
        for words, stdin in ((('-f', path, 'hi'), b''), (('-f', path), b'hi\n'), (('-f', path, '-f', other), b'')):
            self.assertTrue(content(*words, stdin=stdin).startswith('File p.txt:\n````\n'), words)
        self.assertIn('empty prompt', self.refuses(2, '-q', '-f', blank))  # -q: without the warning


class Output(ChatCase):
    def test_stdout_is_the_answer_and_one_newline(self):
        for answer in (b'plain', b'with\nlines', b'\xe6\xbc\xa2\xe5\xad\x97', b'', b'ends\n'):
            self.fake(answer)
            for term in ('dumb', 'xterm-256color', None):
                if term:
                    self.env['TERM'] = term
                else:
                    self.env.pop('TERM', None)
                self.assertEqual(self.says(stdin=b'x'), answer + b'\n')

    def test_a_pipe_gets_the_bytes_of_the_model_unchanged(self):
        self.fake(b'\x1b[31mred\x9b \xff')
        self.assertEqual(self.says(stdin=b'x'), b'\x1b[31mred\x9b \xff\n')
        self.fake('tame')
        done = self.chat('--stats', '-v', stdin=b'x')
        self.assertNotIn(b'\x1b', done.stdout + done.stderr)

    def test_no_stream_writes_the_same(self):
        self.fake('some words')
        self.assertEqual(self.says('--no-stream', stdin=b'x'), b'some words\n')

    def test_stats_are_one_line_on_stderr(self):
        self.fake('some words')
        done = self.chat('--stats', '--seed', '7', stdin=b'x')
        self.assertEqual(done.stdout, b'some words\n')
        self.assertRegex(done.stderr, rb'^\[10 tok, .*ctx \d+/4096, seed 7\]\n$')
        self.assertEqual(self.chat('--stats', '-q', stdin=b'x').stderr, b'')

    def test_json_has_every_field_and_valid_text(self):
        self.fake(b'bad \xff byte', n_ctx=512)
        turn = json.loads(self.says('--json', '--seed', '5', stdin=b'x'))
        self.assertLessEqual(FIELDS, set(turn))
        self.assertEqual((turn['text'], turn['finish'], turn['seed']), ('bad \ufffd byte', 'stop', 5))
        self.assertEqual(turn['completion_tokens'], 10)
        self.assertEqual(turn['prompt_tokens'], turn['evaluated_tokens'] + turn['reused_tokens'])

    def test_a_rate_counts_only_tokens_that_took_time(self):
        """No rate for fewer than two tokens after the prompt, nor for tokens that came together with the first."""
        for answer, together, n_decoded in (('a', 1, 0), ('ab', 1, 0), ('abc', 1, 2), ('abcdef', 4, 2),
                                            ('abcde', 4, 0), ('abcdef', 6, 0)):
            with self.subTest(answer=answer, together=together):
                self.fake(answer, together=together, token_ms=2)
                turn = json.loads(self.says('--json', stdin=b'x'))
                rate = turn['decode_tokens_per_s']
                self.assertAlmostEqual(rate, n_decoded / turn['decode_s'] if n_decoded else 0, 3)
                shown = self.chat('-i', '--stats', stdin=b'x\n/stats\n').stderr.decode()
                line = re.search(r'\[\d tok(.*), first token', shown)[1]
                last, in_all = re.search(r'\ngeneration (.*), first(?s:.*)\n {12}generation (.*)\n', shown).groups()
                for text in (line, last, in_all):
                    self.assertEqual('tok/s' in text, rate > 0, text)

    def test_one_token_of_a_prompt_has_no_rate(self):
        self.fake('some words', 'more')
        shown = self.chat('-i', '--stats', stdin=b'x\n/continue\n/stats\n').stderr.decode()
        first, second = re.findall(r'(?m)^\[.*', shown)
        self.assertRegex(first, r' prompt \d+ tok \d+ tok/s,')
        self.assertIn(' prompt 1 tok, ', second)
        self.assertRegex(shown, r'1 evaluated in \d+\.\d\d s\n')

    def test_saved_states_are_reported(self):
        """A model that cannot return to every position evaluates some tokens again."""
        self.fake('ok', states=3, again=12)
        turn = json.loads(self.says('--json', stdin=b'x'))
        self.assertEqual((turn['saved_states'], turn['saved_state_bytes']), (3, 3000000))
        done = self.chat('-i', '--stats', stdin=b'hello\n/stats\n/info\n')
        self.assertIn(b'states      3 kept in 3.0 MB; 12 tok evaluated again from position 0\n', done.stderr)
        self.assertIn(b'states      2.0 MB a chat, 1.0 MB for each saved state, at most 100.0 MB in all\n',
                      done.stderr)
        self.fake('ok')
        done = self.chat('-i', '--stats', stdin=b'hello\n/stats\n/info\n')
        self.assertNotIn(b'states', done.stderr)

    def test_times_between_tokens_are_percentiles(self):
        self.fake('answer', token_ms=3)  # at least: a busy machine adds to it
        turn = json.loads(self.says('--json', stdin=b'x'))
        gaps = [turn[f'token_gap_p{n}_s'] for n in (50, 95, 99)]
        self.assertEqual(gaps, sorted(gaps))
        self.assertGreater(gaps[0], 0.00297)  # the error of a percentile is less than 1 %
        self.assertLess(gaps[0], turn['decode_s'])
        self.assertEqual(gaps[1], gaps[2])  # of five times, both are the longest
        one = json.loads(self.says('--json', '-n', '1', stdin=b'x'))
        self.assertEqual([one[f'token_gap_p{n}_s'] for n in (50, 95, 99)], [0, 0, 0])

    def test_state_memory_is_a_size(self):
        self.fake('ok')
        for size in ('auto', '0', '500M', '2G', '12345', '1000G', '1K'):
            self.assertEqual(self.says('--state-memory', size, stdin=b'x'), b'ok\n')
        for size in ('', '2g', '-1', '2GB', 'M', '1001G', '99999999999999999999', '9999999999G', 'all'):
            self.assertIn('expected auto or a size', self.refuses(2, '--state-memory', size, stdin=b'x'))

    def test_jsonl_streams_start_tokens_end(self):
        self.fake('abc')
        events = [json.loads(line) for line in self.says('--jsonl', stdin=b'x').splitlines()]
        self.assertEqual([e['event'] for e in events], ['start'] + ['token'] * 3 + ['end'])
        self.assertEqual(''.join(e['text'] for e in events[1:-1]), events[-1]['text'])
        self.fake('\x1eb', load_ms=300)  # the first answer is empty, and it starts during loading
        out = self.says('--lines', '--jsonl', stdin=b'x\ny\n')
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(e['event'], e.get('turn')) for e in events],
                         [('start', 1), ('end', None), ('start', 2), ('token', None), ('end', None)])

    def test_each_start_has_an_end(self):
        long = 'x' * 400
        words = ['-c', '256', '--lines', '--keep-going']
        text = f'{long}\nshort\n{long}\nok\n'.encode()
        done = self.chat(*words, '--jsonl', stdin=text)
        self.assertEqual(done.returncode, 4)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([e['turn'] for e in events if e['event'] == 'start'], [1, 2, 3, 4])
        ends = [e for e in events if e['event'] == 'end']
        self.assertEqual(['error' in e for e in ends], [True, False, True, False])
        done = self.chat(*words, '--json', stdin=text)
        self.assertEqual(['error' in json.loads(line) for line in done.stdout.splitlines()],
                         [True, False, True, False])
        self.fake(load_error=1)
        self.assertEqual(self.chat('--jsonl', stdin=b'x').stdout, b'')
        self.fake('hello', fail_at=3)
        events = [json.loads(line) for line in self.chat('--jsonl', stdin=b'x').stdout.splitlines()]
        self.assertEqual([e['event'] for e in events], ['start', 'token', 'token', 'end'])
        self.assertIn('fake device failed', events[-1]['error'])

    def test_a_setting_without_a_limit_is_null(self):
        for words, limit in (([], None), (['-n', '7'], 7)):
            settings = json.loads(self.says('--json', *words, stdin=b'x'))['settings']
            self.assertEqual((settings['max_tokens'], settings['think_budget']), (limit, None))

    def test_json_escapes_what_could_change_a_terminal(self):
        unsafe = '\x7f\x9b31m \u202e \u2066 \u200f \U000e0041'
        self.fake(unsafe)
        path = self.path('unsafe.jsonl')
        script = f'x\n/export {path}!\n/save {path}.json!\n'.encode()
        self.assertEqual(self.chat('-i', stdin=script).returncode, 0)
        files = []
        for name in (path, path + '.json'):
            with open(name, 'rb') as file:
                files.append(file.read())
        for said in [self.says('--json', stdin=b'x'), self.says('--jsonl', stdin=b'x'), *files]:
            self.assertIsNone(re.search('[\x7f-\x9f\u200f\u202e\u2066\U000e0041]', said.decode()), said)
        self.assertEqual(json.loads(self.says('--json', stdin=b'x'))['text'], unsafe)
        self.assertEqual(json.loads(files[0].splitlines()[1])['content'], unsafe)

    def test_logprobs_need_a_place(self):
        for words in (['-p', 'x'], ['--lines'], ['--batch', '1']):
            self.assertEqual(self.refuses(2, '--logprobs', '2', *words, stdin=b''),
                             'bitnet-chat: --logprobs needs --json or --jsonl\n')
        self.says('--logprobs', '0', stdin=b'x')
        self.chat('--logprobs', '2', '-i', stdin=b'x\n')

    def test_a_full_screen_without_a_terminal_is_a_warning(self):
        for option, words in (('--tui', ['--tui']), ('--ui full', ['--ui', 'full'])):
            said = f'bitnet-chat: warning: {option} has no effect: only a chat at a terminal has a full screen\n'
            for more in (['-p', 'x'], ['--lines']):
                done = self.chat(*words, *more, stdin=b'x\n')
                self.assertEqual((done.returncode, done.stderr.decode()), (0, said), more)
            done = self.chat(*words, '--batch', '1', stdin=b'x\n')  # this generator has no batches
            self.assertTrue(done.stderr.decode().startswith(said), done.stderr)
            self.says('-q', *words, '-p', 'x')
        self.env['BITNET_CHAT_CONFIG'] = self.write('full', 'ui = full\n')  # for all chats at a terminal
        self.says('-p', 'x')

    def test_logprobs_come_with_alternatives(self):
        self.fake('ab')
        turn = json.loads(self.says('--json', '--logprobs', '2', stdin=b'x'))
        self.assertEqual([t['text'] for t in turn['logprobs']], ['a', 'b'])
        self.assertEqual(len(turn['logprobs'][0]['top']), 2)

    def test_a_stop_string_and_a_length_end_the_answer(self):
        self.fake('one two three')
        turn = json.loads(self.says('--json', '--stop', 'two', stdin=b'x'))
        self.assertEqual((turn['text'], turn['finish']), ('one ', 'stop_string'))
        turn = json.loads(self.says('--json', '-n', '3', stdin=b'x'))
        self.assertEqual((turn['text'], turn['finish']), ('one', 'length'))

    def test_a_full_context_ends_the_answer(self):
        self.fake('word ', endless=1, n_ctx=100)
        turn = json.loads(self.says('--json', stdin=b'x'))
        self.assertEqual(turn['finish'], 'context')
        self.assertEqual(turn['prompt_tokens'] + turn['completion_tokens'], 100)

    def test_the_same_token_over_and_over_is_noticed(self):
        self.fake('G', same=1)
        done = self.chat('--json', stdin=b'x')
        self.assertEqual(json.loads(done.stdout)['finish'], 'degenerate')
        self.assertEqual(json.loads(done.stdout)['completion_tokens'], 200)
        self.assertIn(b'degenerated', done.stderr)


class Lines(ChatCase):
    def test_each_line_is_a_turn_of_one_conversation(self):
        self.fake('first', 'second')
        self.assertEqual(self.says('--lines', stdin=b'a\n\nb\n'), b'first\n\nsecond\n')
        turns = [json.loads(line)
                 for line in self.says('--lines', '--json', stdin=b'a\nb').splitlines()]
        self.assertEqual([t['text'] for t in turns], ['first', 'second'])
        # The KV cache holds the first turn without its end token, which was never evaluated.
        self.assertEqual(turns[1]['reused_tokens'],
                         turns[0]['prompt_tokens'] + turns[0]['completion_tokens'])
        self.assertGreater(turns[1]['evaluated_tokens'], 0)

    def test_the_prompt_of_the_command_line_is_sent_as_the_lines_are(self):
        path, session = self.write('note.txt', 'secret'), self.path('session.json')
        if os.path.exists(session):
            os.unlink(session)
        self.says('--lines', '-p', f'see @{path}\r\nnow', '--session', session, stdin=b'')
        self.assertEqual(self.saved(session)[0]['content'], f'see @{path}\nnow')
        self.fake('one')
        self.assertEqual(self.says('--lines', '-p', ' ', stdin=b'a\n'), b'one\n')
        done = self.chat('-c', '256', '--lines', '-p', 'x' * 400, stdin=b'a\n')
        self.assertEqual(done.returncode, 4)
        self.assertNotIn(b'line 0', done.stderr)

    def test_an_at_path_in_the_prompt_is_text_and_the_help_says_so(self):
        path, session = self.write('notes.txt', b'notes'), self.path('at.json')
        for words, sent in ((['-p', f'see @{path}'], f'see @{path}'), ([f'see @{path}'], f'see @{path}'),
                            (['-i', f'see @{path}'], f'File notes.txt:\n```\nnotes\n```\n\nsee @{path}')):
            if os.path.exists(session):
                os.unlink(session)
            self.says('-q', '--session', session, *words, stdin=b'')
            self.assertEqual(self.saved(session)[0]['content'], sent)
        self.assertIn(b'@path in it is text: see -f\n', self.says('--help'))

    def test_a_bad_line_fails_alone(self):
        self.fake('one')
        for words in (['--lines'], ['-i']):
            done = self.chat(*words, '--keep-going', stdin=b'a\nb\0c\nd\n')
            self.assertEqual((done.returncode, done.stdout), (2, b'one\n\none\n'), words)
            self.assertIn(b'line 2 is binary: a NUL byte at offset 1', done.stderr)
        objects = self.chat('--lines', '--keep-going', '--json', stdin=b'a\nb\0c\nd\n').stdout.splitlines()
        self.assertEqual(['error' in json.loads(line) for line in objects], [False, True, False])
        done = self.chat('-i', '--keep-going', stdin=b'"""\na\nb\n"""\nc\0d\n')
        self.assertIn(b'line 5 is binary', done.stderr)
        done = self.chat('--lines', stdin=b'a\nbbb\nc\377\nd\n')
        self.assertIn(b'line 3 is not valid UTF-8 at offset 1', done.stderr)

    def test_a_line_that_is_too_long_fails_alone(self):
        self.fake('one')
        stdin = b'a\n' + b'x' * ((64 << 20) + 9) + b'\nb\n'
        done = self.chat('--lines', '--keep-going', stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (2, b'one\n\none\n'))
        self.assertIn(b'line 2 is longer than 67108864 bytes', done.stderr)
        done = self.chat('--lines', stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (2, b'one\n'))

    def test_a_message_without_its_closing_fence_is_a_warning(self):
        self.fake('one')
        done = self.chat('-i', stdin=b'/system x\n"""\na\n/quit\n')
        self.assertEqual((done.returncode, done.stdout), (0, b'one\n'))
        self.assertIn(b'line 2 begins a message without a closing """', done.stderr)

    def test_an_answer_that_fails_ends_its_line(self):
        self.fake('hello', fail_at=3)
        done = self.chat('--lines', '--keep-going', stdin=b'a\nb\n')
        self.assertEqual((done.returncode, done.stdout), (1, b'he\n\nhe\n'))

    def test_a_message_whose_file_cannot_be_attached_has_its_object(self):
        self.fake('ok')
        done = self.chat('-i', '--keep-going', '--jsonl', stdin=b'a\n@./\nb\n')
        ends = [event for event in map(json.loads, done.stdout.splitlines()) if event['event'] == 'end']
        self.assertEqual(['error' in event for event in ends], [False, True, False])
        self.assertEqual(done.returncode, 5, done.stderr)

    def test_a_script_consists_of_messages_and_commands(self):
        self.fake('first', 'second')
        done = self.chat('-i', stdin=b'hello\n/undo\n/history\nagain\n/stats\n/quit\nnever\n')
        self.assertEqual((done.returncode, done.stdout), (0, b'first\n\nsecond\n'))
        self.assertIn(b'1 undone', done.stderr)
        self.assertIn(b'nothing was said yet', done.stderr)
        self.assertIn(b'in all      2 answers', done.stderr)

    def test_a_script_ends_at_the_first_failure_unless_it_keeps_going(self):
        """A failure is a command, a message that does not fit, or a file of a message that cannot be attached."""
        self.fake('ok', n_ctx=200)
        for line, code in (('/redo', 2), ('/nonsense', 2), ('x' * 300, 4), ('@./', 5)):
            script = f'hello\n{line}\nafter\n/stats x\n/quit\nnever\n'.encode()
            done = self.chat('-i', stdin=script)
            self.assertEqual((done.returncode, done.stdout), (code, b'ok\n'), (line, done.stderr))
            for end in (b'', b'/quit'):
                done = self.chat('-i', '--keep-going', stdin=script.partition(b'/quit')[0] + end)
                self.assertEqual((done.returncode, done.stdout), (code, b'ok\n\nok\n'), (line, done.stderr))
                self.assertIn(b'usage: /stats', done.stderr)
        for words, code, said in (((), 5, b''), (('--keep-going',), 5, b'ok\n')):
            done = self.chat('-i', *words, '-p', '@./', stdin=b'after')
            self.assertEqual((done.returncode, done.stdout), (code, said), done.stderr)
        lines = b'a\n' + b'x' * 300 + b'\nb'
        for words, said in (((), b'ok\n'), (('--keep-going',), b'ok\n\nok\n')):
            done = self.chat('--lines', *words, stdin=lines)
            self.assertEqual((done.returncode, done.stdout), (4, said), done.stderr)
            self.assertIn(b'bitnet-chat: line 2: the prompt has', done.stderr)
        self.assertEqual(self.says('-i', '--keep-going', stdin=b'a'), b'ok\n')

    def test_a_command_whose_file_cannot_be_used_is_exit_5(self):
        self.fake('ok')
        folder, bad = self.folder.name, self.write('bad.json', '{')
        in_use = self.path('talk.json')
        with open(self.write('talk.json.lock', b''), 'rb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for code, lines in ((5, (f'/save {folder}/none/x.json', f'/save {folder}/', '/save /proc/x.json',
                                     f'/load {folder}/none.json', '/load none', f'/load {bad}', f'/load {in_use}',
                                     f'/save {in_use}!',
                                     f'/export {folder}/none/x.md', '/export /proc/x.md', f'/dump {folder}/none/x',
                                     f'/dump {folder}', f'/file {folder}/none', f'/file {folder}',
                                     f'/system @{folder}/none', f'/system @{folder}')),
                                (2, (f'/save {bad}', '/save .hidden', f'/dump {bad}', '/export x.doc', '/system @-',
                                     f'/file {self.write("binary", b"a" + bytes(1))}'))):
                for line in lines:
                    for words in ((), ('--keep-going',)):
                        done = self.chat('-i', '--private', *words, stdin=f'hi\n{line}\nafter\n'.encode())
                        said = b'ok\n\nok\n' if words else b'ok\n'
                        self.assertEqual((done.returncode, done.stdout), (code, said), (line, done.stderr))

    def test_an_unknown_command_of_a_script_is_exit_2(self):
        for line, command in (('/undu', '/undo'), ('/sve', '/save'), ('/udno', '/undo'), ('/help sve', '/save')):
            self.assertIn(f'did you mean {command}?', self.refuses(2, '-i', stdin=line.encode() + b'\n'))
        self.assertIn('/help lists them', self.refuses(2, '-i', stdin=b'/zzz\n'))
        self.fake('ok')
        self.assertEqual(self.says('-i', stdin=b'/usr/bin/undu\n//undu\n /undu\n'),
                         b'ok\n\nok\n\nok\n')


class Endings(ChatCase):
    def test_a_prompt_too_long_is_exit_4_with_both_numbers(self):
        self.fake('ok', n_ctx=100)
        text = self.refuses(4, stdin=b'x' * 500)
        self.assertRegex(text, r'the prompt has 5\d\d tokens, .* the context has only 100')
        self.assertRegex(self.refuses(4, '--lines', stdin=b'x\n' + b'y' * 500), r'the prompt has 5\d\d tokens')
        self.assertRegex(self.refuses(4, '--lines', stdin=b'x' * 40 + b'\n' + b'y' * 40), 'the conversation has')

    def test_overflow_drop_drops_whole_oldest_turns(self):
        self.fake('ok', n_ctx=120)
        done = self.chat('--lines', '--json', '--overflow', 'drop', stdin=b'a' * 30 + b'\n'
                         + b'b' * 30 + b'\n' + b'c' * 30)
        turns = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(turns), 3)
        self.assertGreater(turns[2]['dropped_turns'], 0)
        self.assertRegex(done.stderr, rb'context: dropped \d oldest turns? \(\d+ tok\), re-reading \d+')

    def test_a_failing_engine_is_exit_1(self):
        self.fake('hello', fail_at=3)
        done = self.chat(stdin=b'x')
        self.assertEqual((done.returncode, done.stdout), (1, b'he\n'))
        self.assertEqual(done.stderr, b'bitnet-chat: the fake device failed\n')

    def test_a_model_that_does_not_load_is_exit_3(self):
        self.fake(load_error=1)
        self.assertIn("tensor 'x' is broken", self.refuses(3, stdin=b'x'))
        for path in self.models_that_do_not_load():
            done = self.chat('-p', 'x', model='--model=' + path, stdin=subprocess.DEVNULL)
            if os.path.basename(path) not in ('half.gguf', 'short.gguf'):  # this generator does not read the weights
                self.assertEqual((done.returncode, done.stdout), (3, b''), path)
                self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)

    def test_full_and_closed_stdout_are_exit_5(self):
        self.fake('some words')
        for words in ((), ('--version',), ('--help', 'all'), ('--completion', 'bash')):  # some fill the buffer
            with open('/dev/full', 'wb') as full:
                done = self.chat(*words, stdin=b'x', stdout=full)
            said = b'bitnet-chat: cannot write to standard output: No space left on device\n'
            self.assertEqual((done.returncode, done.stderr), (5, said), words)
        closed = subprocess.run(['sh', '-c', '"$0" "$1" -p x >&-', PROGRAM, self.model],
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=self.env,
                                timeout=60, check=False)
        self.assertEqual(closed.returncode, 5, closed.stderr)

    def test_a_reader_that_leaves_ends_it_silently(self):
        self.fake('word ', endless=1, token_ms=1, n_ctx=4000)
        with subprocess.Popen([PROGRAM, self.model, '-p', 'x'], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
                              restore_signals=True) as chat:
            chat.stdout.read(1)
            chat.stdout.close()
            self.assertEqual(chat.wait(timeout=60), -signal.SIGPIPE)
            self.assertEqual(chat.stderr.read(), b'')

    def signalled(self, number, *args):
        begun = self.gate()
        self.fake('word ', endless=1, token_ms=5, begun=begun)
        with subprocess.Popen([PROGRAM, self.model, *args, '-p', 'x'], env=self.env, bufsize=0,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as chat:
            self.wait_for(lambda: os.path.exists(begun))
            first = b''
            while not args and len(first) < 5:
                first += chat.stdout.read(5)
            chat.send_signal(number)
            out, err = chat.communicate(timeout=60)
            return chat.returncode, first + out, err

    def test_signals_stop_flush_and_set_the_exit_code(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            returncode, out, err = self.signalled(number)
            self.assertEqual((returncode, err), (code, b''))
            self.assertTrue(out.startswith(b'word') and out.endswith(b'\n'), out)
        returncode, out, _ = self.signalled(signal.SIGINT, '--json')
        self.assertEqual((returncode, json.loads(out)['finish']), (130, 'interrupted'))

    def test_a_signal_during_prefill_reports_the_tokens_that_were_evaluated(self):
        read = self.gate('read')
        self.fake('never', read_us=100000, read=read)
        question = 'a question that is read slowly ' * 20
        with subprocess.Popen([PROGRAM, self.model, '--json', '-p', question], env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as chat:
            self.wait_for(lambda: os.path.exists(read))
            chat.send_signal(signal.SIGINT)
            turn = json.loads(chat.communicate(timeout=60)[0])
        self.assertEqual((chat.returncode, turn['finish'], turn['reused_tokens']), (130, 'interrupted', 0))
        self.assertTrue(0 < turn['evaluated_tokens'] < turn['prompt_tokens'], turn)
        self.assertGreaterEqual(turn['prefill_s'], 0.1 * turn['evaluated_tokens'])

    def test_signals_during_a_blocked_write(self):
        """A resize changes nothing. A signal that ends the program is no error of the output."""
        self.fake('ab' * 2500)
        for number, code in ((signal.SIGWINCH, 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with subprocess.Popen([PROGRAM, self.model, '--lines', '-c', '1000000'], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env) as process:
                process.stdin.write(b'q\n' * 3)
                process.stdin.close()
                size = fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
                seen = [0, 0]  # bytes in the pipe, now and before

                def waits_in_write(process=process, seen=seen, size=size):
                    time.sleep(0.01)
                    n_bytes = struct.unpack('i', fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4)))[0]
                    seen[:] = n_bytes, seen[0]
                    return size // 2 < seen[0] == seen[1] and sleeps(process.pid)
                wait_until_quiet(waits_in_write, lambda seen=seen: f'{seen} bytes are in the pipe', 0.3)
                process.send_signal(number)
                if code != 0:
                    process.wait(timeout=60)  # although nobody reads
                time.sleep(0.2)
                out, said = process.stdout.read(), process.stderr.read()
                self.assertEqual((process.wait(), said), (code, b''))
                if code == 0:
                    self.assertEqual(out.count(b'\n\n'), 2)

    def test_bad_options_name_option_value_and_range(self):
        for words, said in ((['--temp', 'abc'], "--temp 'abc': expected a number from 0 to 100"),
                            (['--temp', 'nan'], '--temp'), (['--temp', '-1'], '--temp'),
                            (['--top-p', '7'], '--top-p'), (['--ctx', '99999999'], '--ctx'),
                            (['--device', 'gpu'], '--device'), (['--nonsense'], '--nonsense'),
                            (['--logit-bias', 'x'], '--logit-bias'),
                            (['--logit-bias', '5=20000'], '-10000 to 10000'), (['--stop', ''], '--stop'),
                            (['--json', '--jsonl'], '--jsonl'), (['--logit-bias', '99999=1'], '99999'),
                            (['--template', 'nope'], 'nope')):
            self.assertIn(said, self.refuses(2, *words, '-p', 'x'), words)
        self.refuses(2, '--info', '--batch', '2', stdin=b'x')
        # Before any message
        for words in (['-i'], ['--lines'], ['--batch', '2'], ['--info']):
            self.assertIn('the vocabulary has', self.refuses(2, '--logit-bias', '99999=1', *words, stdin=b''))

    def test_the_default_model_is_a_variable_or_built_in(self):
        done = subprocess.run([PROGRAM, '-p', 'x'], stdin=subprocess.DEVNULL, env=self.env,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b'built-in demo model', done.stderr)
        self.env['BITNET_CHAT_MODEL'] = self.model
        done = subprocess.run([PROGRAM, 'hello', 'there'], stdin=subprocess.DEVNULL, env=self.env,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b'Hello.\n'))


class Files(ChatCase):
    def config(self, text):
        self.write_in_home('.config/bitnet-chat/config', text)

    def test_config_sets_and_warns_of_unknown_names(self):
        self.fake('ok')
        self.config('# mine\ntemp = 0.25\nnonsense = 1\n')
        done = self.chat('--json', stdin=b'x')
        self.assertEqual(json.loads(done.stdout)['settings']['temp'], 0.25)
        self.assertRegex(done.stderr, rb"config:3: there is no option 'nonsense'")
        done = self.chat('--json', '--temp', '0.5', stdin=b'x')
        self.assertEqual(json.loads(done.stdout)['settings']['temp'], 0.5)

    def test_a_bad_config_value_is_exit_2_with_its_line(self):
        self.config('top-p = 7\n')
        self.assertIn('config:1', self.refuses(2, '-p', 'x'))

    def test_a_saved_chat_continues_with_its_ids(self):
        self.fake('first', 'second')
        session = self.path('s.json')
        self.says('--session', session, '-p', 'a')
        with open(session, encoding='utf-8') as file:
            stored = json.load(file)
        self.assertEqual((stored['format'], stored['version']), ('bitnet-chat session', 1))
        answer = stored['messages'][1]
        self.assertEqual((answer['content'], answer['finish']), ('first', 'stop'))
        self.assertEqual(bytes(answer['ids']), b'first')
        self.assertEqual(os.stat(session).st_mode & 0o777, 0o600)
        done = self.chat('--session', session, '-p', 'b')
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        with open(session, encoding='utf-8') as file:
            self.assertEqual(len(json.load(file)['messages']), 4)

    def test_unknown_keys_of_a_saved_chat_are_kept(self):
        self.fake('first', 'second')
        session = self.path('others.json')
        self.says('--session', session, '-s', 'be brief', '-p', 'a')
        with open(session, encoding='utf-8') as file:
            stored = json.load(file)
        stored['made by'] = {'name': 'x', 'n': [1, 2.5, None], 'text': 'ä\0b'}
        stored['id'] = 1  # a prefix of a known name
        stored['messages'][0]['tag'] = 's'
        stored['messages'][1]['time'] = 17
        stored['messages'][1]['role content'] = 'two known names'
        stored['messages'][2]['rating'] = 5
        self.write('others.json', json.dumps(stored))
        self.says('--session', session, '-p', 'b')
        with open(session, encoding='utf-8') as file:
            kept = json.load(file)
        self.assertEqual((kept['made by'], kept['id']), (stored['made by'], 1))
        self.assertEqual(kept['messages'][:3], stored['messages'])
        self.assertEqual(len(kept['messages']), 5)
        self.assertEqual(set(kept['messages'][4]), {'role', 'content', 'finish', 'ids'})
        done = self.chat('--session', session, '-i', stdin=b'/retry\n/undo 2\n/retry\n/system new\n/save\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(session, encoding='utf-8') as file:
            kept = json.load(file)
        self.assertEqual(kept['made by'], stored['made by'])
        self.assertEqual(kept['messages'][0], {'role': 'system', 'content': 'new'})
        self.assertEqual(kept['messages'][1]['time'], 17)
        self.assertNotIn('rating', kept['messages'][2])

    def test_an_edited_text_is_used_instead_of_its_ids(self):
        self.fake('first')
        session = self.path('edited.json')
        self.says('--session', session, '-p', 'a')
        with open(session, encoding='utf-8') as file:
            stored = json.load(file)
        stored['messages'][1]['content'] = 'FIRST'
        self.write('edited.json', json.dumps(stored))
        done = self.chat('--load', session, '-i', stdin=b'/history\n/dump\n')
        self.assertIn(b'1 of 1 answers are tokenised again', done.stderr)
        self.assertIn(b'FIRST', done.stderr)
        self.assertNotIn(b'first', done.stderr)

    def test_a_chat_with_another_model_names_it(self):
        self.fake('first')
        session = self.path('other.json')
        self.says('--session', session, '-p', 'a')
        with open(session, encoding='utf-8') as file:
            stored = json.load(file)
        stored['vocabulary'] = '0' * 16
        why = '1 of 1 answers are tokenised again: their tokens are of the vocabulary of another model'
        for name, said in (('big', ", 'big'"), ('x\x1b[2J' + 80 * 'y', ", 'x\ufffd[2Jyyy"), ('', ''), (7, '')):
            stored['model'] = name
            self.write('other.json', json.dumps(stored))
            text = self.chat('--load', session, '-p', 'b').stderr.decode()
            self.assertIn(why + said, text)
            self.assertLess(len(text), 240)

    def test_answers_of_a_file_by_hand_need_no_ids(self):
        answer = {'role': 'assistant', 'content': 'b'}
        chat = {'format': 'bitnet-chat session', 'version': 1,
                'messages': [{'role': 'user', 'content': 'a'}, answer]}
        for ids, said in ((None, b''), ([], b''),
                          ([98], b'bitnet-chat: warning: 1 of 1 answers are tokenised again: the file does not '
                                 b'name the vocabulary of their tokens\n')):
            if ids is not None:
                answer['ids'] = ids
            path = self.write('hand.json', json.dumps(chat))
            self.assertEqual(self.chat('--load', path, '-p', 'c').stderr, said)

    def test_a_broken_session_is_exit_5_with_its_line(self):
        for text, said in (('{"format": ', 'line 1, column'), ('[]', 'not a saved chat'),
                           ('{"format": "bitnet-chat session", "version": 2}', 'version'),
                           ('{"format": "bitnet-chat session", "version": 1, "messages": '
                            '[{"role": "assistant", "content": "x"}]}', 'message 0'),
                           ('{"format": "bitnet-chat session", "version": 1, "messages": [], "skipped": -1}',
                            '"skipped" is not a number'),
                           ('{"format": "bitnet-chat session", "version": 1, "messages": [], "skipped": "1"}',
                            '"skipped" is not a number')):
            path = self.write('broken.json', text)
            self.assertIn(said, self.refuses(5, '--load', path, '-p', 'x'))

    def test_a_missing_saved_chat_is_named(self):
        self.assertEqual(self.refuses(5, '--load', 'trip', '-p', 'x'),
                         "bitnet-chat: there is no saved chat 'trip'; --list-sessions lists them\n")
        self.write('hello.txt', '{}')
        done = subprocess.run([PROGRAM, self.model, '--load', 'hello.txt', '-p', 'x'], env=self.env, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stderr),
                         (5, b"bitnet-chat: there is no saved chat 'hello.txt'; "
                             b'the file of this name is ./hello.txt\n'))
        for name in ('no.json', './no', '/none/no'):
            self.assertIn(f"cannot open '{name}'", self.refuses(5, '--load', name, '-p', 'x'))

    def test_a_script_that_cannot_save_is_exit_5(self):
        self.fake('ok')
        done = self.chat('--session', '/proc/such.json', '-p', 'x', stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (5, b'ok\n'))

    def test_a_single_prompt_saves_no_conversation(self):
        self.fake('first', 'second')
        self.says('-p', 'a')
        self.assertFalse(os.path.exists(self.state('last.json')))
        self.assertIn('no last conversation', self.refuses(5, '-C', '-p', 'b'))


if __name__ == '__main__':
    main()
