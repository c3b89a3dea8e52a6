#!/usr/bin/env python3
"""
test_chat_cli.py CHAT MAKE_MODEL: the chat with its engine on a tiny generated model: answers, snapshots, errors.
"""
import glob
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main

# Templates that write something before the last answer only, as some write an empty thought there.
LAST = ("{% for m in messages %}{{ m.role }}:{% if loop.last and m.role == 'assistant' %}[last]{% endif %}"
        "{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:[last]{% endif %}")
SHORT = ("{% for m in messages %}{% if loop.last and m.role == 'assistant' %}[{% endif %}{{ m.content }}{% endfor %}"
         "{% if add_generation_prompt %}[{% endif %}")


class Chat(ChatCase):
    def test_the_same_seed_gives_the_same_bytes(self):
        first = self.says('-n', '32', '--seed', '1', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--seed', '1', '--threads', '1', stdin=b'hello'), first)
        self.assertEqual(self.says('-n', '32', '--seed', '1', '-t', '1', '--pin', stdin=b'hello'), first)
        seeds = {self.says('-n', '32', '--seed', str(i), stdin=b'hello') for i in range(4)}
        self.assertGreater(len(seeds), 1)
        greedy = self.says('-n', '32', '--greedy', stdin=b'hello')
        self.assertEqual(self.says('-n', '32', '--temp', '0', '--seed', '9', stdin=b'hello'), greedy)

    def test_greedy_and_temp_have_the_precedence_of_all_options(self):
        """The later one on the command line counts, and the command line more than the configuration."""
        self.env['BITNET_CHAT_CONFIG'] = self.path('config')
        with open(self.env['BITNET_CHAT_CONFIG'], 'w', encoding='utf-8') as file:
            file.write('greedy = on\n')
        for words, temp in ((('--greedy', '--temp', '1.5'), 1.5), (('--temp', '1.5', '--greedy'), 0),
                            (('--temp', '1.5'), 1.5), ((), 0), (('--no-greedy', '--temp', '1.5'), 1.5)):
            turn = json.loads(self.says('--json', '-n', '1', *words, stdin=b'x'))
            self.assertEqual(turn['settings']['temp'], temp, words)
            sheet = json.loads(self.says('--info', '--json', *words))
            self.assertEqual(sheet['sampling']['temp']['value'], temp, words)
        done = self.chat('--json', '-n', '1', '-i', '--greedy', stdin=b'/set temp 1\nx\n')
        self.assertEqual(json.loads(done.stdout)['settings']['temp'], 1)

    def test_an_error_about_the_config_file_names_its_variable(self):
        self.env['BITNET_CHAT_CONFIG'] = self.path('none')
        said = self.refuses(5, '-p', 'x')
        self.assertIn(f"BITNET_CHAT_CONFIG: cannot open '{self.path('none')}': No such file", said)

    def test_all_errors_of_the_config_file_are_reported_at_once(self):
        path = self.write('config', 'temp = hot\ntempp = 1\nwrap = maybe\n')
        self.env['BITNET_CHAT_CONFIG'] = path
        for words, n_lines in ((('-p', 'x'), 3), (('-q', '-p', 'x'), 2)):
            done = self.chat(*words)
            lines = done.stderr.decode().splitlines()
            self.assertEqual((done.returncode, len(lines)), (2, n_lines), lines)
            self.assertIn(f"bitnet-chat: {path}:1: temp 'hot': expected", lines[0])
            self.assertIn(f"bitnet-chat: {path}:3: wrap 'maybe': expected", lines[n_lines - 1])

    def test_an_error_about_the_model_names_where_its_path_is_from(self):
        home = self.path('home')
        os.mkdir(home)
        with open(os.path.join(home, 'c'), 'w', encoding='utf-8') as file:
            file.write('model = /none.gguf\n')
        self.env.update(HOME=home, BITNET_CHAT_CONFIG='~/c')
        words = [PROGRAM, '-p', 'x']
        for said in ('model of the config file: cannot open', 'BITNET_CHAT_MODEL: cannot open'):
            done = subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                                  check=False)
            self.assertEqual((done.returncode, said in done.stderr.decode()), (3, True), done.stderr)
            self.env['BITNET_CHAT_MODEL'] = '/none.gguf'

    def test_speculation_changes_no_byte(self):
        runs = {self.says('-n', '40', '--seed', '1', '--spec', mode, stdin=b'ababababab')
                for mode in ('off', 'on', 'auto')}
        self.assertEqual(len(runs), 1)

    def test_saved_states_change_no_byte(self):
        """A chat with undo, retry and continue, with models that cannot return to every position."""
        script = (b'repeat a b c a b c a b c\n/retry\nand more a b c\n/retry\nthird\n/undo 3\nnew second\n'
                  b'/continue\n/retry\n/stats\n')
        ways = (('--state-memory', '0', '--spec', 'off'), ('--state-memory', '1M', '--spec', 'on'),
                ('--ubatch', '7', '--spec', 'on'), ('-t', '1', '--spec', 'auto'))
        for preset in ('qwen35-tiny', 'maple-tiny'):
            model = self.make(preset + '.gguf', '--preset', preset, '--shape', '4,256,4,2,256,2048')
            runs = [self.chat('-i', '-n', '60', '--seed', '3', '--temp', '0.3', *way, stdin=script, model=model)
                    for way in ways]
            self.assertEqual({run.returncode for run in runs}, {0}, runs[0].stderr)
            self.assertEqual(len({run.stdout for run in runs}), 1, preset)
            self.assertIn(b'states      0 kept in 0.0 MB', runs[0].stderr)
            self.assertRegex(runs[1].stderr, rb'prompt +\d+ tok: \d+ reused, 1 evaluated')
            self.assertRegex(runs[1].stderr, rb'states +[1-9]\d* kept in [\d.]+ MB\n')

    def test_explain_prints_the_plan_and_exits(self):
        text = self.says('--explain', '-t', '1', '--ubatch', '64', 'never asked').decode()
        self.assertRegex(text, r'(?s)^prompt\ntokens +64 at once, 64 at most\nthreads +1 of 1, as requested.*'
                               r'\n\nanswer\ntokens +1 at once, 64 at most\n.*\nhead +1 row, .* MB\n$')
        self.refuses(2, '--explain', '--json')

    def test_the_environment_sets_the_threads(self):
        """The command line has priority, then the variable of the program, then that of OpenMP."""
        for variables, words, said in (({'OMP_NUM_THREADS': '1'}, (), '1 of 1, as requested'),
                                       ({'OMP_NUM_THREADS': '3,1'}, (), '3 of 3, as requested'),
                                       ({'OMP_NUM_THREADS': '3', 'BITNET_CHAT_THREADS': '1'}, (), '1 of 1, as'),
                                       ({'OMP_NUM_THREADS': '3', 'BITNET_CHAT_THREADS': '3'}, ('-t', '1'), '1 of 1')):
            self.env.update(variables)
            self.assertRegex(self.says('--explain', *words).decode(), rf'threads +{said}', variables)
            for name in variables:
                del self.env[name]
        self.env['OMP_NUM_THREADS'] = 'many'  # ignored; with LLVM 14 it caused crashes in some of the runs
        for _ in range(5):
            done = self.chat('--explain')  # the OpenMP library may print a message about the value
            self.assertEqual(done.returncode, 0)
            self.assertNotIn(b'as requested', done.stdout)

    def test_a_model_file_truncated_in_use_is_reported(self):
        model = self.path('cut.gguf')
        shutil.copy(self.model, model)
        process = subprocess.Popen([PROGRAM, model, '--lines', '--json', '-n', '4'], env=self.env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        process.stdin.write(b'one\n')
        process.stdin.flush()
        process.stdout.readline()
        os.truncate(model, 0)
        errors = process.communicate(b'two\n', timeout=60)[1]
        self.assertEqual(process.returncode, -signal.SIGBUS)
        self.assertRegex(errors, rb'^bitnet-chat: the model file was cut short, .*in use\n$')

    def test_a_model_file_truncated_before_it_is_loaded_is_reported(self):
        fifo = self.path('early')
        self.reports_sigbus(fifo, self.model, '-s', '@' + fifo, '-p', 'x', env=self.env)

    def test_a_family_without_bos_gets_exactly_its_template(self):
        model = self.make('qwen.gguf', '--arch', 'qwen3', '--vocab', 'qwen')
        words = ['--activations', 'token', '--json', '-n', '2', 'hi']
        for more, n_tokens in ((['--think', 'on'], 21), ([], 27), (['--template-arg', 'enable_thinking=false'], 27)):
            done = self.chat(*words, *more, model=model)
            self.assertEqual(json.loads(done.stdout)['prompt_tokens'], n_tokens)

    def test_a_layer_tensor_that_the_graph_lacks_is_refused(self):
        """The files differ from `plain` only in tensors that the graph of llama does not compute."""
        plain = self.make('plain.gguf', '--arch', 'llama')
        answer = self.chat('-n', '8', '--seed', '1', 'hi', model=plain).stdout
        for extra in ('blk.0.attn_q_norm.weight,blk.0.attn_k_norm.weight', 'blk.1.post_ffw_norm.weight',
                      'blk.0.attn_sub_norm.weight,blk.1.ffn_sub_norm.weight'):
            first = extra.split(',')[0]
            model = self.make('extra.gguf', '--arch', 'llama', '--extra', extra)
            done = self.chat('-n', '8', '--seed', '1', 'hi', model=model)
            self.assertEqual((done.returncode, done.stdout), (3, b''), done.stderr)
            self.assertRegex(done.stderr.decode(), rf"^bitnet-chat: .*'{first}'.*answers would be wrong.*\n$")
            words = [word for name in extra.split(',') for word in ('--ignore-tensor', name)]
            done = self.chat('-n', '8', '--seed', '1', *words, 'hi', model=model)
            self.assertEqual((done.returncode, done.stdout), (0, answer), done.stderr)
            self.assertIn(f"answers may be wrong: '{first}'", done.stderr.decode())
        harmless = self.make('harmless.gguf', '--arch', 'llama', '--extra',
                             'blk.0.attn_rot_embd.weight,blk.1.ffn_up.input_scale')
        done = self.chat('-n', '8', '--seed', '1', 'hi', model=harmless)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, answer, b''))

    def test_a_second_turn_evaluates_only_its_new_tokens(self):
        lines = self.says('--lines', '--json', '-n', '20', '--seed', '3', stdin=b'one\ntwo\nthree\n')
        turns = [json.loads(line) for line in lines.splitlines()]
        for before, turn in zip(turns, turns[1:]):
            said = before['prompt_tokens'] + before['completion_tokens']
            # the last token of an answer that reached its limit was not evaluated
            self.assertGreaterEqual(turn['reused_tokens'], said - 1)
            self.assertEqual(turn['prompt_tokens'], turn['reused_tokens'] + turn['evaluated_tokens'])

    def test_a_resumed_conversation_gives_the_same_answers(self):
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

    def test_logprobs_are_sorted_probabilities_with_the_greedy_token_first(self):
        turn = json.loads(self.says('--json', '--logprobs', '3', '--greedy', '-n', '8', stdin=b'x'))
        self.assertEqual(len(turn['logprobs']), turn['completion_tokens'])
        for token in turn['logprobs']:
            top = [entry['logprob'] for entry in token['top']]
            self.assertEqual((token['top'][0]['id'], top[0]), (token['id'], token['logprob']))
            self.assertEqual((len(top), top), (3, sorted(top, reverse=True)))
            self.assertLess(sum(map(math.exp, top)), 1 + 1e-5)

    def snapshots(self):
        return glob.glob(os.path.join(self.home.name, '.cache/bitnet-chat/kv/*'))

    def kept(self, *words):
        """A saved chat of one answer with its snapshot. Returns its path and the standard error."""
        session = os.path.join(self.home.name, 'kept.json')
        done = self.chat('-n', '20', '--seed', '3', '--session', session, '--snapshot', *words,
                         stdin=b'one')
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.copy(session, session + '.first')
        return session, done.stderr.decode()

    def resume(self, session, *words):
        """Continue the saved chat, then restore its file. Returns the answer as JSON and the standard error."""
        done = self.chat('-n', '20', '--seed', '3', '--json', '--session', session, *words, stdin=b'two')
        shutil.copy(session + '.first', session)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr.decode()

    def test_a_loaded_snapshot_gives_the_same_bytes(self):
        session, said = self.kept()
        self.assertRegex(said, r'writing a snapshot of ([0-9.]+) MB to .*\.kv\n.*snapshot written: \d+ tok, \1 MB')
        [path] = self.snapshots()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        fast, said = self.resume(session)
        self.assertRegex(said, r'snapshot loaded: \d+ tok')
        self.assertGreater(fast['reused_tokens'], 20)
        os.unlink(path)
        slow, said = self.resume(session)
        self.assertEqual((slow['reused_tokens'], said), (0, ''))
        self.assertEqual(slow['text'], fast['text'])
        self.assertEqual(slow['prompt_tokens'], fast['prompt_tokens'])

    def test_a_failure_that_was_passed_over_does_not_prevent_the_snapshot(self):
        session = os.path.join(self.home.name, 'passed.json')
        done = self.chat('-i', '-n', '4', '--keep-going', '--session', session, '--snapshot',
                         stdin=b'a\n/nosuch\nb\n')
        self.assertEqual((done.returncode, len(self.snapshots())), (2, 1), done.stderr)

    def test_a_snapshot_that_does_not_fit_is_reported_and_not_used(self):
        session, _ = self.kept()
        [path] = self.snapshots()
        with open(path, 'rb') as file:
            whole = file.read()
        wanted = self.resume(session)[0]['text']
        def put(at, data):
            return whole[:at] + data + whole[at + len(data):]
        mark, model, version, count, ids = 0, 8, 40, 72, 80  # offsets
        cache = len(whole) // 2  # the keys and values are nearly all of the file
        for name, changed, reason in (
                ('mark', put(mark, b'x'), 'not a snapshot of this version'),
                ('model', put(model, b'xx'), 'to another model'),
                ('version', put(version, b'gpu'),
                 'KV cache of the snapshot has type gpu-f16-1, but cpu-f16-1 is needed'),
                ('hostile version', put(version, b'\x1b[2J'), 'has type unknown'),
                ('count', put(count, b'\xff' * 8), 'tokens, but the context has room for only'),
                ('ids', put(ids, b'\x07\0\0\0'), 'at token 0'),
                ('ids below 0', put(ids, b'\xff' * 4), 'at token 0'),
                ('cache', put(cache, bytes([whole[cache] ^ 1])), 'damaged'),
                ('short', whole[:-1], 'damaged'), ('head', whole[:30], 'damaged'),
                ('empty', b'', 'damaged'), ('long', whole + b'x', 'damaged')):
            with open(path, 'wb') as file:
                file.write(changed)
            turn, said = self.resume(session)
            self.assertIn(reason, said, name)
            self.assertIn('the conversation is read again', said, name)
            self.assertEqual((turn['reused_tokens'], turn['text']), (0, wanted), name)

    def test_a_snapshot_of_another_kind_of_cache_is_not_used(self):
        session, _ = self.kept('--kv', 'q8')
        turn, said = self.resume(session)
        self.assertIn('KV cache of the snapshot has type cpu-q8-1, but cpu-f16-1 is needed (--kv', said)
        self.assertEqual(turn['reused_tokens'], 0)
        turn, said = self.resume(session, '--kv', 'q8')
        self.assertRegex(said, r'snapshot loaded: \d+ tok')
        self.assertGreater(turn['reused_tokens'], 20)

    def test_approximations_are_shown_in_banner_and_info(self):
        done = self.chat('-i', '-n', '8', '--kv', 'q8', '--head', 'q8', stdin=b'a\n/info\n')
        said = (done.stdout + done.stderr).decode(errors='replace')
        self.assertIn('head at 8 bits, KV cache at 8 bits', said)
        self.assertRegex(said, r'context .* bytes a token \(q8\)')

    def test_a_context_beyond_the_memory_is_limited_and_named(self):
        """2^30 tokens of 1 kB are more than half of the memory of any machine."""
        model = self.make('long.gguf', '--shape', f'2,256,4,2,768,{2 ** 30}')
        text = self.chat('--info', model=model).stdout.decode()
        pattern = rf'context +(\d+) tok \(fits into half of the free memory; trained with {2 ** 30}\)'
        self.assertRegex(text, pattern)
        self.assertLess(int(re.search(pattern, text)[1]), 2 ** 30)
        text = self.chat('--info', '--ctx', '4096', model=model).stdout.decode()
        self.assertIn(f'context     4096 tok (trained with {2 ** 30})', text)

    def test_info_names_the_activations_and_the_reason(self):
        done = self.chat('-i', '-n', '1', '--activations', 'token', stdin=b'/info\n')
        self.assertIn('activations int8 per token: as requested', done.stderr.decode())
        done = self.chat('-i', '-n', '1', stdin=b'/info\n')
        self.assertIn('activations int8 per token: as in the training of this architecture',
                      done.stderr.decode())

    def test_info_says_that_a_file_is_rotated(self):
        said = 'rotated     Hadamard transforms, blocks of 64, explicit signs, version 1'
        model = self.make('rotated.gguf', '--rotated', '64', '--untied')
        self.assertIn(said, self.chat('--info', model=model).stdout.decode())
        self.assertNotIn('rotated', self.chat('--info').stdout.decode())

    def test_a_snapshot_of_other_weights_of_the_file_is_not_used(self):
        session, _ = self.kept()
        turn, said = self.resume(session, '--i2s-layout', 'c')
        self.assertRegex(said, 'another model, I2_S layout.*; the conversation is read again')
        self.assertEqual(turn['reused_tokens'], 0)

    def test_a_snapshot_of_other_activations_is_not_used(self):
        session, _ = self.kept('--activations', 'block')
        turn, said = self.resume(session)
        self.assertRegex(said, 'another model, .*kind of activations.*; the conversation is read again')
        self.assertEqual(turn['reused_tokens'], 0)
        turn, said = self.resume(session, '--activations', 'block')
        self.assertGreater(turn['reused_tokens'], 20)

    def test_cut_and_hostile_snapshots_never_break_an_answer(self):
        session, _ = self.kept()
        [path] = self.snapshots()
        with open(path, 'rb') as file:
            whole = file.read()
        wanted = self.resume(session)[0]['text']
        for i in range(24):
            at = (i * 7919) % 400 if i % 2 else len(whole) * i // 24
            with open(path, 'wb') as file:
                file.write(whole[:at] + (b'\xff' * 16 + whole[at + 16:] if i % 3 else b''))
            turn, said = self.resume(session)
            self.assertEqual(turn['text'], wanted, (i, at, said))

    def test_an_edited_conversation_leaves_its_snapshot_alone(self):
        session, _ = self.kept('--system', 'x')
        with open(session + '.first', encoding='utf-8') as file:
            kept = json.load(file)
        kept['messages'][1]['content'] = 'other'
        for path in (session, session + '.first'):
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(kept, file)
        turn, said = self.resume(session)
        self.assertRegex(said, 'the conversation differs from its snapshot at token [1-9]')
        self.assertEqual(turn['reused_tokens'], 0)

    def resumed(self, model, lines, template=LAST, n_tokens=20, forget=0):
        """A saved chat of these lines, continued without its last `forget` turns: the answer and the standard error
        with the snapshot, the answer without it, and the number of tokens from the last answer on."""
        session = os.path.join(self.home.name, 'last.json')
        words = ('-n', str(n_tokens), '--seed', '3', '--template', '@' + self.write('last.jinja', template),
                 '--session', session)
        done = self.chat(*words, '--snapshot', '--lines', stdin=lines, model=model)
        self.assertIn(b'snapshot written', done.stderr)
        with open(session, encoding='utf-8') as file:
            kept = json.load(file)
        del kept['messages'][len(kept['messages']) - 2 * forget:]
        found = []
        for _ in range(2):
            with open(session, 'w', encoding='utf-8') as file:
                json.dump(kept, file)
            found.append(self.chat(*words, '--json', stdin=b'next', model=model))
            for path in self.snapshots():
                os.unlink(path)
        os.unlink(session)
        self.assertEqual(json.loads(found[1].stdout)['reused_tokens'], 0)
        behind = len(kept['messages'][-1]['ids']) + len('\nuser:next\nassistant:[last]')
        return json.loads(found[0].stdout), found[0].stderr.decode(), json.loads(found[1].stdout), behind

    def test_a_snapshot_is_used_up_to_an_answer_that_the_template_writes_in_another_way(self):
        for preset in ('tiny', 'qwen3-tiny', 'maple-tiny', 'qwen35-tiny'):  # KV cache, rings, recurrent states
            model = self.make(preset + '.gguf', '--preset', preset)
            for n_lines in (2, 4):
                fast, said, slow, behind = self.resumed(model, b'a longer line\n' * n_lines)
                self.assertRegex(said, r'snapshot loaded: \d+ tok', preset)
                self.assertEqual(fast['reused_tokens'], slow['prompt_tokens'] - behind, preset)
                self.assertEqual((fast['text'], fast['prompt_tokens']), (slow['text'], slow['prompt_tokens']), preset)

    def test_a_snapshot_with_more_turns_than_the_conversation_is_used(self):
        for preset in ('tiny', 'maple-tiny', 'qwen35-tiny'):
            model = self.make(preset + '.gguf', '--preset', preset)
            fast, said, slow, _ = self.resumed(model, b'a longer line\n' * 5, forget=1)
            self.assertRegex(said, r'snapshot loaded: \d+ tok', preset)
            self.assertGreater(fast['reused_tokens'], slow['prompt_tokens'] // 2, preset)
            self.assertEqual(fast['text'], slow['text'], preset)

    def test_a_snapshot_without_a_state_before_the_difference_is_not_used(self):
        """No state is saved in the first 16 tokens."""
        model = self.make('qwen35-tiny.gguf', '--preset', 'qwen35-tiny')
        fast, said, slow, _ = self.resumed(model, b'12345678901\n', SHORT, n_tokens=8)
        self.assertRegex(said, 'the conversation differs from its snapshot at token 1[0-9];')
        self.assertEqual((fast['reused_tokens'], fast['text']), (0, slow['text']))

    def test_no_snapshot_without_the_option_or_in_private(self):
        self.kept('--no-snapshot')
        self.kept('--private')
        self.assertEqual(self.snapshots(), [])
        done = self.chat('-i', '-n', '8', stdin=b'one\n/set snapshot on\n/save trip\n/clear\n/load trip\ntwo\n')
        self.assertEqual((done.returncode, len(self.snapshots())), (0, 1), done.stderr)

    def test_a_context_longer_than_in_training_is_a_warning(self):
        for words in ([], ['--batch', '2']):
            done = self.chat('-n', '2', '-c', '300', *words, stdin=b'x')
            self.assertEqual((done.returncode, done.stderr), (0, b'bitnet-chat: warning: a context of 300 tokens is '
                                                             b'more than the 256 the model was trained with\n'))
            self.says('-n', '2', '-c', '256', *words, stdin=b'x')
            self.says('-n', '2', '-c', '300', '-q', *words, stdin=b'x')

    def test_the_printed_seed_reproduces_the_answer(self):
        done = self.chat('-n', '30', '--stats', stdin=b'one')
        seed = done.stderr.decode().rsplit('seed ', 1)[1].rstrip(']\n')
        self.assertEqual(self.says('-n', '30', '--seed', seed, stdin=b'one'), done.stdout)

    def test_a_file_that_is_not_a_model_is_exit_3(self):
        for path in self.models_that_do_not_load():
            done = self.chat('-p', 'x', model='--model=' + path)
            self.assertEqual((done.returncode, done.stdout), (3, b''), path)
            self.assertEqual(done.stderr.count(b'\n'), 1, done.stderr)


if __name__ == '__main__':
    main()
