#!/usr/bin/env python3
"""
test_chat_manual.py CHAT MAKE_MODEL: statements of the manual page and the help about options, commands, keys,
the status row and pipes that no other test covers. With a scripted generator.
"""
import json
import os
import re
import signal
import subprocess

from support.idle import catches
from support.program_case import PROGRAM, main
from support.terminal_case import PAINTERS, PROMPT, Terminal, TerminalCase, in_pieces

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/bitnet-chat.1')


class Options(TerminalCase):
    def test_wrap_breaks_between_words_and_no_wrap_does_not(self):
        answer = b'seven letters a word makes'
        self.env['TERM'] = 'dumb'  # without escape sequences
        for words, whole in (([], False), (['--no-wrap'], True), (['--plain'], True)):
            self.fake(answer)
            terminal = self.ready('--no-stats', *words, columns=15)
            start = len(terminal.seen)
            terminal.send(b'x\r')
            terminal.expect(rb'makes(?s:.*)>>> ', start=start)
            self.assertEqual(answer in terminal.seen[start:], whole, terminal.seen[start:])

    def test_a_stop_text_has_no_escapes(self):
        self.fake('a line\nwith \\n in it')
        for text, answer in (('\n', b'a line\n'), ('\\n', b'a line\nwith \n')):
            self.assertEqual(self.says('--stop', text, '-p', 'x'), answer)

    def test_markdown_colour_is_forced_and_refused(self):
        self.fake('**bold**')
        for variables, looks in (({}, True), ({'NO_COLOR': '1'}, False), ({'CLICOLOR_FORCE': '1'}, True),
                                 ({'CLICOLOR_FORCE': '0'}, False)):
            self.env.update(variables)  # NO_COLOR stays set
            terminal = self.ready()
            self.assertEqual(b'\x1b[1m**bold**' in self.says_in(terminal, b'x\r'), looks, variables)

    def test_quiet_leaves_banner_and_notices_out(self):
        self.fake('answer', 'other')
        for words in PAINTERS:
            terminal = self.open('-q', *words)
            terminal.expect(PROMPT)
            self.says_in(terminal, b'x\r', in_pieces(b'answer'))
            self.says_in(terminal, b'/nope\r', b'unknown command')  # errors are printed nevertheless
            terminal.settle()  # Ctrl-D is ignored while an answer runs
            terminal.send(b'\x15\x04')
            self.left_clean(terminal, 0)
            for word in (b'for commands', b'loaded in', b' tok, '):
                self.assertNotIn(word, terminal.seen)

    def test_the_banner_names_a_base_model(self):
        for words in PAINTERS:
            terminal = self.ready('--template', 'plain', *words)
            terminal.expect(b'base model: plain text completion, not chat')
            self.leave(terminal)
            self.leave(self.ready(*words))
        self.assertEqual(self.says('--template', 'plain', '-p', 'x'), b'Hello.\n')

    def test_a_file_that_is_a_base_model_is_named_once(self):
        with open(self.model, 'rb') as file:
            data = file.read()
        for old, new in ((b'tokenizer.chat_template', b'tokenizer.none_template'), (b'<|eot_id|>', b'<|eod_id|>')):
            data = data.replace(old, new)
        self.model = self.write('base.gguf', data)
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.assertEqual(terminal.seen.count(b'base model: plain text completion, not chat'), 1)
            self.leave(terminal)

    def test_a_variable_makes_the_chat_private(self):
        for value, words, kept in (('1', [], False), ('0', [], True), ('1', ['--no-private'], True)):
            self.env['BITNET_CHAT_PRIVATE'] = value
            for name in ('last.json', 'last.json.journal', 'history'):
                if os.path.exists(self.state(name)):
                    os.unlink(self.state(name))
            terminal = self.ready(*words)
            self.says_in(terminal, b'x\r')
            self.leave(terminal)
            self.assertEqual(os.path.exists(self.state('last.json')), kept)
            self.assertEqual(os.path.exists(self.state('history')), kept)

    def test_a_private_chat_writes_only_files_that_are_named(self):
        session, log, notes = (os.path.join(self.home.name, name) for name in ('s.json', 'log', 'notes.md'))
        self.chat('--private', '--snapshot', '--session', session, '--log', log, '-i',
                  stdin=f'x\n/export {notes}\n'.encode())
        self.says('--private', '--load', session, '-i', stdin=b'y\n')
        found = [os.path.join(place, name) for place, _, names in os.walk(self.home.name) for name in names]
        self.assertEqual(sorted(found), sorted((session, log, notes)))

    def test_files_follow_the_xdg_variables(self):
        state = self.env['XDG_STATE_HOME'] = os.path.join(self.home.name, 'elsewhere')
        data = self.env['XDG_DATA_HOME'] = os.path.join(self.home.name, 'data')
        terminal = self.ready()
        self.says_in(terminal, b'x\r')
        self.says_in(terminal, b'/save trip\r', b'1 turn')
        self.says_in(terminal, b'/help\r', rb'your input is saved in ' + state.encode())
        self.leave(terminal)
        self.assertEqual(sorted(os.listdir(os.path.join(state, 'bitnet-chat'))), ['history', 'last.json'])
        self.assertEqual(os.listdir(os.path.join(data, 'bitnet-chat/sessions')), ['trip.json'])

    def test_arguments_of_a_template_reach_it(self):
        template = '@' + self.write('argument.jinja', b'{{ style }}{{ messages[0].content }}')
        counts = [json.loads(self.says('--json', '--template', template, *words, stdin=b'x'))['prompt_tokens']
                  for words in ([], ['--template-arg', 'style=loud'])]
        self.assertEqual(counts[1] - counts[0], 4)

    def test_members_of_json_are_in_the_manual(self):
        with open(MANUAL, encoding='utf-8') as file:
            named = set(re.findall(r'\w+', ' '.join(re.findall(r'^\.Va (.*)$', file.read(), re.M))))
        answer = json.loads(self.says('--json', stdin=b'x'))
        info = json.loads(self.says('--info', '--json'))
        self.assertEqual({*answer, *answer['settings'], *info, *info['sampling']['temp']} - named, set())

    def test_settings_are_listed_with_their_sources(self):
        config = self.write('sources', 'top-p = 0.5\n')
        self.env['BITNET_CHAT_CONFIG'] = config
        done = self.chat('-i', '--top-k', '7', stdin=b'/set min-p 0.25\n/set\n')
        for row in (r'top-p +0\.5 +config', r'top-k +7 +flag', r'min-p +0\.25 +set', r'temp +0\.7 +default'):
            self.assertRegex(done.stderr.decode(), row)

    def test_continue_resumes_after_a_crash(self):
        self.fake('one', 'two')
        for how in (['-C'], ['--session', self.path('crash.json')]):
            terminal = self.ready(*how[1:] and how)
            self.says_in(terminal, b'before\r')
            terminal.expect(PROMPT, start=terminal.seen.rindex(b' tok'))
            terminal.process.kill()
            terminal.process.wait()
            for words in PAINTERS:
                terminal = self.ready(*how, *words)
                self.says_in(terminal, b'/history\r', rb'1> before')
                self.leave(terminal)

    def test_a_model_that_cannot_be_opened_leaves_the_terminal_as_it_was(self):
        for path in self.models_that_do_not_load():
            if os.path.basename(path) in ('half.gguf', 'short.gguf'):  # this generator does not read the weights
                continue
            for words in PAINTERS:
                terminal = Terminal([PROGRAM, '--model=' + path, *words], self.env, columns=400)
                self.addCleanup(terminal.close)
                self.assertEqual(terminal.wait(), 3)
                self.assertRegex(terminal.seen, rb'^bitnet-chat: [^\n]*\r\n$')
                self.assertEqual(terminal.modes(), terminal.before)


class Commands(TerminalCase):
    def script(self, *lines, words=(), code=0):
        done = self.chat('-i', *words, stdin='\n'.join(lines).encode())
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode()

    def test_each_command_is_explained(self):
        names = re.findall(r'(?m)^/([a-z]+)', self.script('/help').replace('bitnet-chat: ', ''))
        self.assertGreater(len(names), 20)
        for name, text in zip(names, (self.script(f'/help {name}') for name in names)):
            self.assertRegex(text, rf'^/{name} ?[^\n]*: [a-z][^\n]*\n[^\n]*/{name}\b')
        self.assertIn('no command of that name', self.script('/help nonsense', code=2))

    def test_history_shows_the_given_number_of_turns(self):
        self.fake('1', '2', '3')
        text = self.script('a', 'b', 'c', '/history 2')
        self.assertNotIn('1> a', text)
        self.assertIn('2> b\n2\n3> c\n3\n', text)

    def test_clear_keeps_the_system_message(self):
        text = self.script('/system be brief', 'a', '/clear', '/history', '/system')
        self.assertIn('nothing was said yet', text)
        self.assertTrue(text.endswith('be brief\n'))

    def test_context_shows_the_turn_that_is_dropped_next(self):
        turns = ('the first words', 'b', '/context')
        self.assertIn('next to go: the first words', self.script('/set overflow drop', *turns))
        self.assertNotIn('next to go', self.script('/set overflow stop', *turns))

    def test_a_broken_session_changes_nothing(self):
        broken = self.write('broken.json', '{"format": ')
        other = self.path('other.json')
        self.fake('1')
        self.script('a', f'/save {other}!')
        with open(other, encoding='utf-8') as file:
            session = json.load(file)
        session['vocabulary'] = '0' * 16
        self.write('other.json', json.dumps(session))
        for painter in PAINTERS:
            terminal = self.ready(*painter)
            self.says_in(terminal, b'kept\r')
            self.says_in(terminal, f'/load {broken}\r'.encode(), rb'line 1, column')
            self.says_in(terminal, b'\x15/history\r', rb'1> kept')
            self.says_in(terminal, f'/load {other}\r'.encode(), rb"another(?s:.*)model(?s:.*)1 turn")
            self.leave(terminal)

    def test_probs_are_shown_under_the_answer(self):
        self.fake('ab')
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.says_in(terminal, b'/probs 2\r', b'2 likeliest')
            self.says_in(terminal, b'x\r', rb'61% "a" (?s:.*)61% "b" (?s:.*)\[\d+ tok')
            self.leave(terminal)

    def test_retry_draws_another_seed_unless_it_is_fixed(self):
        for words, n in (([], 2), (['--seed', '5'], 1)):
            lines = self.says('-i', '--json', *words, stdin=b'x\n/retry\n').splitlines()
            self.assertEqual(len({json.loads(line)['seed'] for line in lines}), n)

    def test_tab_completes_names_of_sessions_commands_and_settings(self):
        terminal = self.ready('--private')
        self.says_in(terminal, b'/save holidays\r', b'saved in')
        self.says_in(terminal, b'/load holi\t\r', rb'0 turns loaded')
        self.says_in(terminal, b'/help hist\t\r', rb'/history 2 its last two')
        self.says_in(terminal, b'/retry repeat-l\t\r', rb"repeat-last-n '': expected")
        terminal.send(b'\x15')
        self.leave(terminal)


class Keys(TerminalCase):
    def test_escape_is_the_editors_meta_key_at_the_prompt(self):
        for words in PAINTERS:
            terminal = self.ready(*words)
            self.says_in(terminal, b'one two\x1bbX\x1bbY\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['one YXtwo'])

    def test_painters_change_while_the_model_loads_and_a_message_waits(self):
        for words in PAINTERS:
            self.fake('the answer', load_until=self.gate())
            terminal = self.open(*words)
            terminal.expect(PROMPT)
            self.says_in(terminal, b'question\r', b'your message waits')
            self.says_in(terminal, b'ahead\x1bOQ', rb'1049[lh](?s:.*)your message waits')
            self.write('gate', '')
            terminal.expect(rb'\[\d+ tok')
            self.says_in(terminal, b'\x05\r', rb'\[\d+ tok')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['question', 'ahead'])

    def test_an_answer_stops_and_continues_with_the_process(self):
        for words in PAINTERS:
            self.fake('first \x1dand last', hold=self.gate())
            terminal = Terminal(['sh', '-c', 'set -m; "$0" "$@"; read x; fg', PROGRAM, *words, self.model], self.env)
            self.addCleanup(terminal.close)
            terminal.expect(rb'loaded in')
            self.ask_held(terminal, b'x\r')
            terminal.send(b'\x1a')
            terminal.wait_for_modes()
            self.write('gate', '')
            start = len(terminal.seen)
            terminal.send(b'\n')
            if words:  # a repaint writes in one piece what was written in several
                terminal.expect(rb'\[\d+ tok', start=start)
                start = len(terminal.seen)
                terminal.send(b'\x0c')
            terminal.expect(in_pieces(b'last') + rb'(?s:.*)\[\d+ tok', start=start)
            self.leave(terminal)
            self.assertEqual(self.messages('assistant'), ['first and last'])

    def test_typed_ahead_text_can_be_edited_and_have_lines(self):
        for words in PAINTERS:
            self.fake('first \x1dlast', 'fine', hold=self.gate())
            terminal = self.ready(*words)
            self.ask_held(terminal, b'x\r')
            terminal.send(b'onx\x7fe\ntwo\x1b\rthree')
            terminal.expect(b'three')
            self.write('gate', '')
            terminal.expect(rb'\[\d+ tok' if words else rb'\[\d+ tok(?s:.*)three')
            self.says_in(terminal, b'\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['x', 'one\ntwo\nthree'])

    def test_broken_bytes_and_controls_become_replacements(self):
        terminal = self.ready()
        self.says_in(terminal, b'a\xffb\x1b[200~c\x00\x9bd\x1b[201~\r')
        self.leave(terminal)
        [message] = self.messages()
        self.assertNotIn('\0', message)
        self.assertEqual((message[0], message[-1]), ('a', 'd'))
        self.assertIn('\ufffd', message)


class StatusRow(TerminalCase):
    def test_the_status_row_has_no_speed_of_tokens_that_came_at_once(self):
        self.fake('abc\x1d' + 'g' * 20, hold=self.gate())
        terminal = self.ready('--tui')
        self.ask_held(terminal, b'x\r')
        terminal.wait_a_bit(0.5)  # the row is painted again while the answer waits
        # A busy machine may need a quarter of a second for the tokens. Then there is a speed, but a low one.
        rates = re.findall(rb'([\d.]*) tok/s', terminal.seen)
        self.assertEqual([rate for rate in rates if not 0 < float(rate) <= 2 / 0.25], [], terminal.seen)
        self.write('gate', '')
        terminal.expect(rb'\[23 tok')
        self.leave(terminal)

    def test_the_status_row_shows_the_speed_of_a_steady_answer(self):
        self.fake('ab ', endless=1, token_ms=20)
        terminal = self.ready('--tui')
        terminal.send(b'x\r')
        terminal.expect(rb'\d tok/s \| ')
        rates = [float(rate) for rate in re.findall(rb'([\d.]+) tok/s \|', terminal.seen)]
        self.assertLess(max(rates), 60, terminal.seen)  # one token in 20 ms
        self.says_in(terminal, b'\x1b')
        self.leave(terminal)

    def test_the_status_row_shows_unsaved(self):
        terminal = self.ready('--tui', '--session', self.path('row.json'))
        self.says_in(terminal, b'/system x\r', b'system message set')
        self.leave(terminal)
        terminal = self.ready('--tui')
        start = len(terminal.seen)
        self.says_in(terminal, b'x\r')  # Ctrl-D is ignored while an answer runs
        terminal.expect(rb'unsaved', start=start)
        self.leave(terminal)


class Pipes(TerminalCase):
    def begin(self, *words, stdin=subprocess.DEVNULL):
        process = subprocess.Popen([PROGRAM, self.model, *words], env=self.env, bufsize=0, stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def read(self, process, n):
        seen = b''
        while len(seen) < n:
            more = process.stdout.read(n - len(seen))
            self.assertTrue(more, seen)
            seen += more
        return seen

    def test_text_comes_token_by_token_unless_it_is_held(self):
        self.fake('first\x1d last', hold=self.gate())
        process = self.begin('-p', 'x')
        self.assertEqual(self.read(process, 5), b'first')
        self.write('gate', '')
        self.assertEqual(process.communicate(timeout=60), (b' last\n', b''))
        process = self.begin('-p', 'x', '--jsonl')
        events = [json.loads(self.line(process)) for _ in range(6)]
        self.assertEqual([e['event'] for e in events], ['start'] + ['token'] * 5)
        self.write('gate', '')
        self.assertEqual(json.loads(process.communicate(timeout=60)[0].splitlines()[-1])['text'], 'first last')
        begun = self.gate('begun')
        self.fake('first\x1d last', hold=self.gate(), begun=begun)
        process = self.begin('-p', 'x', '--no-stream')
        self.wait_for(lambda: os.path.exists(begun))
        os.set_blocking(process.stdout.fileno(), False)
        self.assertIsNone(process.stdout.read(1))
        os.set_blocking(process.stdout.fileno(), True)
        self.write('gate', '')
        self.assertEqual(process.communicate(timeout=60), (b'first last\n', b''))

    def line(self, process):
        seen = b''
        while not seen.endswith(b'\n'):
            seen += self.read(process, 1)
        return seen

    def test_progress_is_shown_on_a_terminal_and_erased(self):
        path = self.path('piped')
        for words, shown in (([], True), (['-q'], False)):
            self.fake('the answer', read_us=50000)
            terminal = Terminal(['sh', '-c', 'out=$1; shift; exec "$0" "$@" > "$out" < /dev/null', PROGRAM, path,
                                 self.model, '-p', 'x', *words], self.env)
            self.addCleanup(terminal.close)
            self.assertEqual(terminal.wait(), 0)
            self.assertEqual(b'reading' in terminal.seen, shown)
            self.assertNotIn(b'unsaved', terminal.seen)  # this answer is never saved
            self.assertNotIn(b'\x1b', terminal.seen)
            self.assertEqual(terminal.seen.rpartition(b'\r')[2], b'')
            with open(path, 'rb') as file:
                self.assertEqual(file.read(), b'the answer\n')

    def test_progress_does_not_erase_a_thought_on_a_terminal(self):
        plan = ''.join(f'step {i}, ' for i in range(40))
        self.fake(f'<think>{plan}</think>the answer', token_ms=4)  # the thought takes longer than a second
        template = self.write('thinks.jinja',
                              "{% for m in messages %}{{ m.content.split('</think>')[-1] }}\n{% endfor %}")
        path = self.path('piped')
        terminal = Terminal(['sh', '-c', 'out=$1; shift; exec "$0" "$@" > "$out" < /dev/null', PROGRAM, path,
                             self.model, '-p', 'x', '--thoughts', '--template', '@' + template], self.env,
                            columns=500)
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.wait(), 0)
        self.assertIn(plan.rstrip().encode(), terminal.seen)

    def test_an_interrupt_while_the_model_loads_is_exit_130(self):
        for words in (['-p', 'x'], ['--json', '-p', 'x'], ['--lines']):
            self.fake(load_until=self.gate())
            process = self.begin(*words, stdin=subprocess.PIPE)
            self.wait_for(lambda p=process: catches(p.pid, signal.SIGINT))
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
            self.assertEqual((process.returncode, *process.communicate()), (130, b'', b''))


class Overflow(TerminalCase):
    def test_a_refused_message_returns_to_the_editor(self):
        for words in PAINTERS:
            self.fake('ok', n_ctx=120)
            terminal = self.ready('--overflow', 'stop', *words)
            for letter in (b'a', b'b'):
                self.says_in(terminal, letter * 30 + b'\r')
            self.says_in(terminal, b'c' * 30 + b'\r',
                         rb'the conversation has(?s:.*)has(?s:.*)only(?s:.*)120(?s:.*)/forget, /clear')
            self.says_in(terminal, b'\x01/forget 1 \x0b\r', rb'forgotten')
            self.says_in(terminal, b'\x19\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['b' * 30, 'c' * 30])

    def test_a_context_that_fills_is_reported_once_at_80_percent(self):
        for words in ([], ['--plain']):  # the full screen has a status row for it
            self.fake('short words here', n_ctx=100)
            terminal = self.ready(*words)
            self.says_in(terminal, b'hello\r')
            self.says_in(terminal, b'hello2\r', rb'the context is 8\d % full; when it is full, the oldest')
            self.assertEqual(terminal.seen.count(b'% full'), 1)
            self.leave(terminal)

    def test_a_full_context_is_reported_with_the_commands_that_help(self):
        for words in PAINTERS:
            self.fake('short', 'word ' * 60, n_ctx=200)
            terminal = self.ready(*words)
            self.says_in(terminal, b'x\r')
            self.says_in(terminal, b'y\r', rb'the context is full; /continue drops the oldest')
            self.says_in(terminal, b'/continue\r', rb'dropped 1 oldest turn (?s:.*)\[\d+ tok')
            self.leave(terminal)
            self.fake('word ' * 60, n_ctx=200)
            terminal = self.ready(*words)
            self.says_in(terminal, b'x\r', rb'full of this turn alone; a larger --ctx gives longer answers')
            self.says_in(terminal, b'/continue\r', rb'only 200(?s:.*)a larger --ctx gives longer answers')
            self.leave(terminal)
            self.fake('short', 'word ' * 60, n_ctx=200)
            terminal = self.ready('--overflow', 'stop', *words)
            self.says_in(terminal, b'x\r')
            self.says_in(terminal, b'y\r', rb'the context is full; use /forget(?s:.*)/continue')
            self.says_in(terminal, b'/forget\r', rb'forgotten')
            self.says_in(terminal, b'/continue\r', rb'\[\d+ tok')
            self.leave(terminal)


if __name__ == '__main__':
    main()
