#!/usr/bin/env python3
"""
test_chat_commands.py CHAT MAKE_MODEL: each slash command, in a script of lines, with a scripted generator.
"""
import json
import os
import re
import shutil
import subprocess

from support import gguf_edit
from support.chat_case import ChatCase
from support.program_case import PROGRAM, main


class Commands(ChatCase):
    def script(self, *lines, words=(), code=0):
        """
        Run the lines. Returns the standard error. self.messages has (first letter of the role, text) of each message
        at the end, self.answers the standard output.
        """
        path = self.path('session.json')
        if os.path.exists(path):
            os.unlink(path)
        done = self.chat('-i', *words, stdin='\n'.join((*lines, f'/save {path}')).encode())
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        if code == 0:
            with open(path, encoding='utf-8') as file:
                self.messages = [(m['role'][0], m['content']) for m in json.load(file)['messages']]
        self.answers = done.stdout.decode()
        return text

    def test_help_lists_and_explains(self):
        text = self.script('/help', '/help retry', '/help keys')
        for word in ('/set [NAME', '/quit', 'top-k=0', 'Ctrl-X Ctrl-E'):
            self.assertIn(word, text)

    def test_a_beginning_of_several_names_lists_them(self):
        for line in ('/s', '/help s'):
            text = self.script(line, code=2)
            self.assertIn('/s may be /set, /system, /save, /sessions or /stats', text)
        self.assertIn('/h may be /help or /history. Start with a space', self.script('/h', code=2))

    def test_an_unknown_command_that_is_a_setting_says_how_it_is_set(self):
        for line, hint in (('/temp 0.5', 'did you mean /set temp 0.5?'), ('/temp', 'did you mean /set temp?'),
                           ('/Top_K 3', 'did you mean /set top-k 3?'),
                           ('/num_predict', 'did you mean /set max-tokens?'), ('/think', 'did you mean /set think?'),
                           ('/model x', 'it is an option of the command line: --model x.'),
                           ('/json', 'it is an option of the command line: --json.')):
            said = f'unknown command {line.split()[0]} - {hint} Start with a space to send it as text.'
            self.assertIn(said, self.script(line, code=2))
        self.assertIn('temp is an option, not a command; /set temp explains it', self.script('/help temp', code=2))

    def test_a_command_in_capitals_has_a_suggestion(self):
        for name, meant in (('SAVE', 'save'), ('Retry', 'retry'), ('CLAER', 'clear'), ('EXIT', 'quit'),
                            # These are options, too.
                            ('HELP', 'help'), ('System', 'system'), ('LOAD', 'load'), ('HISTORY', 'history')):
            self.assertIn(f'unknown command /{name} - did you mean /{meant}? Start', self.script(f'/{name}', code=2))
            self.assertIn(f'did you mean /{meant}?', self.script(f'/help {name}', code=2))

    def test_a_command_without_arguments_refuses_one(self):
        text = self.script('/help')
        names = re.findall(r'(?m)^/([a-z]+) {3,}', text)
        self.assertEqual(len(names), 6, names)
        self.fake('one', 'two')
        for name in names:
            self.assertNotIn(' :', self.script(f'/help {name}'))
            text = self.script('a', f'/{name} now', 'b', code=2, words=['--keep-going'])
            self.assertIn(f'usage: /{name}, without an argument; nothing was done', text)
            self.assertEqual(self.answers, 'one\n\ntwo\n')
        self.assertIn('nothing was said', self.script('/edit 2', code=2))

    def test_edit_in_a_script_names_no_editor(self):
        self.fake('one')
        text = self.script('a', '/edit')
        self.assertIn('taken back; the conversation is empty', text)
        self.assertNotIn('editor', text)

    def test_abbreviations_and_aliases(self):
        self.fake('one', 'two')
        self.script('a', '/ret', '/und')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'one')])
        self.script('a', '/regen', '/und 2')
        self.assertEqual(self.messages, [])
        self.assertEqual(self.says('-i', stdin=b'/bye\nnever\n'), b'')

    def test_the_own_file_is_known_by_another_path(self):
        self.fake('one')
        path = self.path('own.json')
        other = os.path.join(os.path.dirname(path), '.', 'own.json')
        text = self.script('a', f'/save {other}', f'/load {other}', words=('--session', path))
        self.assertNotIn('in use', text)
        self.assertIn('1 turn saved', text)

    def test_set_shows_changes_refuses_and_resets(self):
        text = self.script('/set temp', '/set temp 0.25', '/set', '/set temp default', '/set top_k=3',
                           '/set parameter temperature 1.5', '/set stop END', '/set stop off')
        for word in ('takes a number from 0 to 100', 'temp = 0.25',
                     'temp              0.25    set        a number from 0 to 100\n',
                     'overflow          stop    default    drop, keep-first or stop\n',
                     'temp = 0.7', 'top-k = 3', 'temp = 1.5', 'stop = "END"', 'stop = off'):
            self.assertIn(word, text)
        self.assertIn('fixed at start', self.script('/set ctx'))
        text = self.script('/set no-wrap on', '/set no-wrap off', '/set no-wrap default')
        self.assertEqual(re.findall('wrap = .*', text), ['wrap = off', 'wrap = on', 'wrap = on'])
        self.assertIn('restart with --no-stream', self.script('/set no-stream on', code=2))
        for line in ('/set tempo 1', '/set tmep 1', '/set temperature-x 1'):
            self.assertIn('did you mean temp?', self.script(line, code=2))
        for line, said in (('/set temp 101', 'from 0 to 100'), ('/set ctx 8192', 'fixed at start'),
                           ('/set nonsense 1', 'no setting'), ('/set top-p nan', 'unchanged')):
            self.assertIn(said, self.script(line, code=2))

    def test_a_setting_of_several_texts_shows_how_to_add_and_to_remove(self):
        text = self.script('/set stop a, b', '/set stop " c"', '/set stop "off"', '/set stop', '/set stop off')
        listed = 'stop = "a, b", " c"'
        for line in ('stop = "a, b"', f'{listed}; /set stop off removes all',
                     f'{listed}, "off"; /set stop off removes all', f'{listed}, "off" (set)',
                     'takes TEXT; /set stop TEXT adds one, /set stop off removes all', 'stop = off'):
            self.assertIn(line + '\n', text)

    def test_a_text_shows_a_newline_and_a_backslash_differently(self):
        text = self.script('/set stop', '/set stop a\\b', words=['--stop', '\n', '--stop', '\\n\t'])
        self.assertIn('stop = "\\n", "\\\\n\\t" (flag)\n', text)
        self.assertIn('stop = "\\n", "\\\\n\\t", "a\\\\b"; /set', text)

    def test_a_value_in_quotes_may_have_blanks(self):
        self.fake('one two three', 'one two three')
        self.script('/set temp "0.5"', '/set stop " th"', 'a', '/retry stop="e t" temp=0')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'on')])
        self.assertIn('an open quote is text', self.script('/set stop "an open quote is text'))

    def test_a_seed_can_be_random_again(self):
        self.fake('one', 'two')
        text = self.script('/set seed 7', 'a', '/set seed random', '/set seed', 'b', '/retry seed=random',
                           words=['--temp', '1', '--stats'])
        self.assertIn('seed = random (default)', text)
        self.assertEqual(text.count('seed 7]'), 1, text)

    def test_set_says_which_names_are_options_of_the_command_line(self):
        for name, help_text in (('help', 'list options, then exit'), ('lines', 'each line of stdin'),
                                ('prompt', 'the prompt; answer it')):
            self.assertIn(f'--{name} is an option of the command line, not a setting:\n{help_text}',
                          self.script(f'/set {name}'))

    def test_set_adds_to_a_list_of_the_command_line(self):
        text = self.script('/set stop three', '/set stop', words=['--stop', 'one', '--stop', 'two'])
        self.assertIn('stop = "one","two","three" (set)', text.replace('", "', '","'))

    def test_set_system_refers_to_its_command(self):
        for line, code in (('/set system', 0), ('/set system be brief', 2)):
            text = self.script(line, code=code)
            self.assertIn('/system TEXT replaces it', text)
            self.assertNotIn('fixed at start', text)

    def model_with_temp(self, temp):
        """The model with general.sampling.temp."""
        with open(self.model, 'rb') as file:
            data = gguf_edit.with_keys(file.read(), ('general.sampling.temp', gguf_edit.F32, temp))
        return self.write('sampling.gguf', data)

    def test_set_default_restores_the_value_of_the_model_file(self):
        model = self.model_with_temp(0.25)
        for words in ((), ('--temp', '1.5')):
            done = self.chat('-i', *words, model=model, stdin=b'/set temp\n/set temp 0.9\n/set temp default\n'
                                                              b'/set temp\n/set top-k 3\n/set top-k default\n')
            text = done.stderr.decode()
            self.assertEqual(done.returncode, 0, text)
            self.assertIn('temp = 0.9\ntemp = 0.25\ntemp = 0.25 (model file)', text)
            self.assertIn('top-k = 3\ntop-k = 40\n', text)

    def test_probs_are_shown_in_a_script(self):
        self.fake('ab')
        for words in ((), ('-q',)):
            text = self.script('/probs 2', 'x', '/probs off', 'y', words=words)
            rows = re.findall(r'(?m)^ *\d+% "[ab]"  +\d+% ".*"$', text)
            self.assertEqual(len(rows), 2, text)
        self.assertEqual(self.answers, 'ab\n\nab\n')

    def test_set_takes_effect(self):
        self.fake('one two three')
        self.script('/set max-tokens 3', 'a', '/set stop two', '/set max-tokens 0', 'b')
        self.assertEqual([text for role, text in self.messages if role == 'a'], ['one', 'one '])

    def test_system_is_replaced_in_place(self):
        text = self.script('/system', '/system be brief', 'a', '/system be long', '/system')
        self.assertIn('there is no system message', text)
        self.assertRegex(text, r'system message replaced; \d+ tok will be re-read')
        self.assertEqual(self.messages[0], ('s', 'be long'))
        self.assertIn('system message removed', self.script('/system be brief', '/system off', 'a'))
        self.assertEqual([role for role, _ in self.messages], ['u', 'a'])
        path = self.write('system.txt', 'from a file')
        self.script(f'/system @{path}')
        self.assertEqual(self.messages, [('s', 'from a file')])
        # The words depend on whether there was a message, not on the number of turns.
        self.assertRegex(self.script('a', '/system x'), r'system message set; \d+ tok will be re-read')
        self.assertIn('system message replaced', self.script('/system x', '/system y'))
        self.assertIn('there is no system message', self.script('/system off'))

    def test_system_reads_only_regular_files(self):
        text = self.script('/system @-', 'this line is not read as the system message', code=2)
        self.assertIn("'-' is standard input", text)
        fifo = self.path('fifo')
        os.mkfifo(fifo)
        for path in (fifo, self.folder.name, '/dev/null'):
            self.assertIn('is not a regular file', self.script(f'/system @{path}', code=5))
        self.assertIn('No such file', self.script('/system @/no/such/file', code=5))

    def test_retry_accepts_settings_for_one_answer(self):
        self.fake('first', 'second', 'third')
        text = self.script('a', '/retry', '/retry max-tokens=2', '/set max-tokens')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'th')])
        self.assertIn('max-tokens = 0', text)
        self.assertIn('nothing was asked', self.script('/retry', code=2))
        self.assertIn('expected NAME=VALUE', self.script('a', '/retry hot', code=2))

    def test_history_prints_each_turn_on_lines_of_its_own(self):
        self.fake('one', '', 'three')
        self.assertIn('1> a\none\n2> b\n\n3> c\nthree\n', self.script('a', 'b', 'c', '/history'))

    def test_set_says_that_temp_0_is_greedy(self):
        for line, remark in (('/set temp 0', '; temp 0 has the same effect'), ('/set temp 0.5', '')):
            self.assertIn(f'greedy            off     default    on or off{remark}\n', self.script(line, '/set'))
            self.assertIn(f'greedy = off (default){remark}\n', self.script(line, '/set greedy'))

    def test_retry_says_that_a_greedy_answer_does_not_change(self):
        self.fake('one', 'one', 'one')
        self.assertEqual(self.script('/set temp 0', 'a', '/retry', '/retry temp=0.9').count('same answer'), 1)
        self.assertNotIn('same answer', self.script('a', '/retry'))
        self.assertNotIn('same answer', self.script('/set temp 0', '/retry', code=2))

    def test_retry_takes_values_as_set_does(self):
        self.fake('an offer', 'an offer')
        self.script('/set stop er', 'a', '/retry stop=off temp=default logit-bias=off')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'an offer')])
        self.assertIn('use /set', self.script('a', '/retry stats=on', code=2))
        self.assertIn("'device' is no setting", self.script('a', '/retry device=cpu', code=2))

    def test_set_tells_which_of_greedy_and_temp_has_no_effect(self):
        text = self.script('/set temp 2', '/set greedy on', '/set temp', '/set greedy')
        self.assertIn('temp = 2 (set); no effect: greedy is on', text)
        self.assertIn('greedy = on (set)\n', text)
        text = self.script('/set greedy on', '/set temp 2', '/set')
        self.assertRegex(text, r'greedy +on +set +.*; no effect: temp overrides it')
        self.assertNotRegex(text, r'temp +2 +set .*no effect')

    def test_undo_and_redo(self):
        self.fake('1', '2', '3')
        text = self.script('a', 'b', 'c', '/undo 2', '/redo')
        self.assertEqual(self.messages, [('u', 'a'), ('a', '1'), ('u', 'b'), ('a', '2')])
        self.assertIn('the last: a', text)
        self.assertIn('nothing to be undone', self.script('/undo', code=2))
        self.assertIn('nothing to be redone', self.script('a', '/undo', 'b', '/redo', code=2))

    def test_undo_restores_the_system_message_only_of_a_command(self):
        self.fake('one')
        for command, system in (('', 'c'), ('/forget', 'b'), ('/retry', 'b'), ('/clear', 'b')):
            lines = [line for line in ('/system a', 'x', '/system b', command, '/system c', '/undo', '/system') if line]
            self.assertEqual(self.script(*lines).splitlines()[-2], system, command)

    def test_clear_forget_and_edit_can_be_undone(self):
        self.fake('1', '2', '3')
        self.script('a', 'b', '/clear')
        self.assertEqual(self.messages, [])
        self.script('a', 'b', '/clear', '/undo', '/forget')
        self.assertEqual(self.messages, [('u', 'b'), ('a', '2')])
        self.script('a', 'b', 'c', '/edit 2')
        self.assertEqual(self.messages, [('u', 'a'), ('a', '1')])
        self.script('a', 'b', 'c', '/edit 2', '/undo')
        self.assertEqual(len(self.messages), 6)

    def test_a_number_above_that_of_the_turns_means_all_turns(self):
        self.fake('1', '2', '3')
        for command, said in (('/forget 9', '3 forgotten; the conversation is empty'),
                              ('/forget ' + '9' * 30, '3 forgotten; the conversation is empty'),
                              ('/undo 9', '3 undone; the conversation is empty'),
                              ('/history 9', '1> a')):
            self.assertIn(said, self.script('a', 'b', 'c', command))
        self.assertEqual(len(self.messages), 6)
        self.script('a', 'b', 'c', '/forget 9', '/undo')
        self.assertEqual(len(self.messages), 6)

    def test_a_fence_spans_lines_and_the_end_closes_it(self):
        path = self.path('fence.json')
        for last in ('"""', '""" \n\n', '', '\n'):
            self.fake('1', '2')
            done = self.chat('-i', '--session', path,
                             stdin=('a\n"""\none\n/two' + last).encode())
            self.assertEqual((done.returncode, done.stdout), (0, b'1\n\n2\n'), done.stderr)
            with open(path, encoding='utf-8') as file:
                asked = [m['content'] for m in json.load(file)['messages'] if m['role'] == 'user']
            self.assertEqual(asked, ['a', 'one\n/two'], last)
            os.unlink(path)

    def test_forget_and_sessions_explain_their_errors(self):
        for line in ('/forget 0', '/forget x', '/forget -1', '/forget 9' + '9' * 30 + 'x'):
            self.assertIn('a whole number of at least 1', self.script('a', line, code=2))
        self.assertIn('nothing to forget', self.script('/forget 1', code=2))
        folder = os.path.join(self.home.name, '.local/share/bitnet-chat')
        os.makedirs(folder)
        with open(os.path.join(folder, 'sessions'), 'w', encoding='utf-8'):
            pass  # a file in place of the folder cannot be listed
        self.assertRegex(self.script('/sessions', code=5), "cannot read '.*sessions'")

    def test_continue_extends_the_answer(self):
        self.fake('one', ' and more')
        self.script('a', '/continue')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'one and more')])
        self.assertIn('no answer to continue', self.script('/continue', code=2))

    def test_the_tokens_of_a_saved_chat_count_from_the_start(self):
        self.fake('one')
        path = self.path('counted.json')
        text = self.script('a', '/context', f'/save {path}')
        n_used = re.search(r'in all +(\d+) tok', text)[1]
        for option in ('--session', '--load'):
            text = self.script('/stats', '/context', words=(option, path))
            self.assertIn(f'context     {n_used} of 4096 tok', text)
            self.assertRegex(text, rf'in all +{n_used} tok')

    def test_continue_says_that_the_answer_was_complete(self):
        self.fake('one', '')
        self.assertIn('warning: the model has nothing to add\n', self.script('a', '/continue'))
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'one')])

    def test_context_shows_the_overflow_policy(self):
        self.assertIn('when it is full: stop', self.script('/context'))
        self.assertIn('oldest turns are dropped', self.script('/set overflow drop', '/context'))

    def test_context_and_dump_show_what_comes_before_the_first_message(self):
        """Some templates report an error if there is no message of the user."""
        template = self.write('question.jinja', b'''
            {%- if messages | selectattr("role", "eq", "user") | list | length == 0 %}
              {{- raise_exception("No user query found") }}
            {%- endif %}
            {%- for m in messages %}{{ "[" ~ m.role ~ "]" ~ m.content }}{% endfor %}[assistant]''')
        words = ('--template', f'@{template}')
        text = self.script('/context', '/dump', words=words)
        self.assertRegex(text, r'system +0 tok\nyou +0 tok\nanswers +0 tok\ntemplate +(\d+) tok\n'
                               r'in all +\1 tok of 4096, \d+ free\nwhen it is full: stop .*\n.*\[user\]\n')
        text = self.script('/system be brief', '/context', '/dump', words=words)
        self.assertRegex(text, r'system +8 tok\n(?s:.*)\[system\]be brief\[user\]\n')
        self.fake('one')
        text = self.script('a', '/undo', '/context', '/dump', words=words)
        self.assertRegex(text, r'of 4096(?s:.*)\[user\]\n')

    def test_an_error_of_the_template_is_the_reason_why_context_fails(self):
        template = self.write('refuses.jinja', b'{{ raise_exception("no system message") }}')
        text = self.script('/system x', '/context', words=('--template', f'@{template}'), code=2)
        self.assertIn('no system message', text)

    def test_context_has_the_number_of_the_statistics_line(self):
        for words in ((), ('--stop', 'tw')):
            self.fake('one two', 'three')
            text = self.script('a', '/context', 'b', '/context', '/stats', '/undo', '/context', '/stats',
                               words=('--stats', *words))
            seen = re.findall(r'(?:ctx |in all +|context +)(\d+)(?: tok)?(?:/| of )4096', text)
            self.assertEqual(len(seen), 7, text)
            self.assertEqual(seen[0], seen[1], text)
            self.assertEqual(len(set(seen[2:5])), 1, text)
            self.assertEqual(seen[5], seen[6], text)
            if not words:  # the tokens behind a stop string are in the context until the next prompt
                self.assertEqual(seen[0], seen[5], text)

    def test_tokens_shows_bytes_of_characters(self):
        self.assertIn('\\xC3|', self.script('/tokens ö'))
        self.assertIn('|\\\\|\n', self.script('/tokens \\n'))
        self.assertIn('\n1 token\n', self.script('/tokens a'))
        self.assertIn('usage: /tokens TEXT', self.script('/tokens', code=2))

    def test_a_bias_for_a_token_that_does_not_exist_is_refused(self):
        self.fake('one', 'two')
        for line in ('/set logit-bias 9999=1', '/retry logit-bias=9999=1'):
            text = self.script('a', '/set logit-bias 97=1', line, '/set logit-bias', 'b', code=2,
                               words=['--keep-going'])
            self.assertIn('--logit-bias 9999=1: the vocabulary has 262 tokens', text)
            self.assertIn('logit-bias = "97=1" (set)', text)
            self.assertEqual(self.answers, 'one\n\ntwo\n')

    def test_an_empty_setting_is_shown_as_it_is_set(self):
        for name in ('stop', 'logit-bias'):
            self.assertEqual(self.script(f'/set {name}').split('\n')[0], f'{name} = off (default)')
            self.assertIn(f'{name} = off\n', self.script(f'/set {name} off'))

    def test_retry_accepts_alternative_setting_names(self):
        self.fake('one two', 'one two')
        text = self.script('a', '/retry num_predict=2 temperature=0', '/set temp')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'on')])
        self.assertIn('temp = 0.7', text)

    def test_several_files_go_before_the_message_or_none(self):
        one, two = self.write('one.txt', '1\n'), self.write('two words.txt', '2\n')
        self.script(f'/file {one} "{two}"', 'x')
        self.assertEqual(self.messages[0][1].count('File '), 2)
        self.script(f'/file {two}', 'x')
        self.assertIn('File two words.txt', self.messages[0][1])
        self.assertIn('none of these files will be sent', self.script(f'/file {one} {one}.missing', code=5))

    def test_dump_replaces_a_file_only_with_an_exclamation_mark(self):
        path = self.path('context')
        self.script(f'/dump {path}')
        self.assertIn(f'/dump {path}! replaces it', self.script('a', f'/dump {path}', code=2))
        self.script('a', f'/dump {path}!')
        with open(path, encoding='utf-8') as file:
            self.assertIn('a', file.read())

    def test_save_load_and_sessions(self):
        self.fake('1', '2')
        self.script('a', '/save trip', '/clear', 'b', '/load trip', '/history')
        self.assertEqual(self.messages[0], ('u', 'a'))
        self.assertEqual(self.script('/sessions').split('\n')[0], 'trip')
        self.assertEqual(self.says('--list-sessions'), b'trip\n')
        self.assertIn("no saved chat 'nothing'", self.script('/load nothing', code=5))
        self.assertIn('not a valid name', self.script('/save .hidden', code=2))

    def test_save_does_not_replace_another_chat(self):
        self.fake('1', '2')
        self.script('a', '/save trip')
        self.assertIn('/save trip! replaces it', self.script('b', '/save trip', code=2))
        self.script('/load trip', '/history', 'c', '/save trip', '/save')
        self.script('b', '/save trip!', '/save trip')
        self.assertIn('1 turn loaded', self.script('/load trip'))

    def test_a_file_that_is_no_lock_file_stays(self):
        path = self.write('Pipfile', 'packages')
        lock = self.write('Pipfile.lock', 'of another program')
        for line in (f'/load {path}', f'/save {path}!'):
            self.chat('-i', stdin=line.encode())
            with open(lock, encoding='utf-8') as file:
                self.assertEqual(file.read(), 'of another program')

    def test_clear_names_only_a_file_that_exists(self):
        self.fake('1')
        path = os.path.join(self.home.name, 'new.json')
        for lines, named in ((('/clear',), False), (('a', '/clear'), True)):
            text = self.chat('-i', '--session', path, stdin='\n'.join(lines).encode()).stderr.decode()
            self.assertEqual('keeps the conversation' in text, named, text)

    def test_redo_survives_a_message_that_was_refused(self):
        self.fake('1', '2', '3')
        words = ['--ctx', '300', '--overflow', 'stop', '--keep-going']
        self.script('a', 'b', '/undo', 'x' * 400, '/redo', words=words, code=4)
        done = self.chat('-i', *words, stdin='\n'.join(('a', 'b', '/undo', 'x' * 400, '/redo', '/history')).encode())
        self.assertIn('2> b', done.stderr.decode())

    def test_redo_does_not_replace_the_answer_of_a_retry(self):
        self.fake('1', '2', '3')
        text = self.script('a', 'b', '/undo', '/retry', '/redo', code=2, words=['--keep-going'])
        self.assertIn('nothing to be redone', text)
        self.assertIn('3', self.answers)

    def test_retry_can_be_undone(self):
        self.fake('first', 'second', 'third')
        for n_undos, answer in ((1, 'second'), (2, 'first')):
            self.script('a', '/retry', '/retry', *['/undo'] * n_undos)
            self.assertEqual(self.messages, [('u', 'a'), ('a', answer)])
        self.script('a', '/retry', '/undo 2')
        self.assertEqual(self.messages, [])
        self.script('a', '/retry', '/undo', '/redo')
        self.assertEqual(self.messages, [('u', 'a'), ('a', 'second')])

    def test_undo_and_redo_name_the_command(self):
        self.fake('1', '2', '3')
        path = self.path('other.json')
        self.says('--session', path, '-p', 'other')
        for line in ('/clear', '/forget', '/edit', '/retry', f'/load {path}'):
            text = self.script('a', 'b', line, '/undo', '/redo')
            name = line.split(' ', maxsplit=1)[0]
            for verb in ('undone', 'redone'):
                self.assertIn(f'the last {name} is {verb}; ', text)
        text = self.script('a', 'b', '/clear', '/undo 2', '/redo 2')
        self.assertIn('2 undone; 1 turn left', text)
        self.assertIn('2 redone; ', text)

    def test_load_can_be_undone(self):
        self.fake('1', '2')
        self.script('a', '/save one', '/clear', 'b', '/load one', '/undo')
        self.assertEqual(self.messages[0], ('u', 'b'))

    def test_an_empty_conversation_replaces_no_file(self):
        """The user may want to load the file, and it is damaged."""
        path = self.write('snap.json', '{"format": "bitnet-chat session", "mess')
        for line in (f'/save {path}', f'/save {path}!'):
            text = self.script(f'/load {path}', line, code=5, words=['--keep-going'])
            self.assertIn(f'the conversation is empty: {path} is not replaced', text)
            with open(path, encoding='utf-8') as file:
                self.assertIn('"mess', file.read())
        self.assertIn('1 turn saved', self.script('a', f'/save {path}!'))

    def test_an_empty_conversation_is_not_exported(self):
        path = self.write('kept.md', 'kept')
        self.assertIn('nothing was said yet', self.script(f'/export {path}!', code=2))
        with open(path, encoding='utf-8') as file:
            self.assertEqual(file.read(), 'kept')

    def test_export_writes_three_formats_and_protects_files(self):
        self.fake('answer')
        path = self.path('talk')
        self.script('a', *(f'/export {path}.{kind}' for kind in ('md', 'txt', 'jsonl')))
        with open(path + '.md', encoding='utf-8') as file:
            self.assertEqual(file.read(), '## user\n\na\n\n## assistant\n\nanswer\n\n')
        with open(path + '.jsonl', encoding='utf-8') as file:
            self.assertEqual([json.loads(line) for line in file],
                             [{'role': 'user', 'content': 'a'},
                              {'role': 'assistant', 'content': 'answer'}])
        self.assertIn('already exists', self.script('a', f'/export {path}.txt', code=2))
        self.script('other', f'/export {path}.txt!')
        with open(path + '.txt', encoding='utf-8') as file:
            self.assertEqual(file.read(), 'user:\nother\n\nassistant:\nanswer\n\n')
        self.assertIn('.md, .txt or .jsonl', self.script('/export x.doc', code=2))

    def test_paths_are_read_alike_by_all_commands(self):
        """Quotes and backslashes as Tab writes them, ~/ for the home directory, and blanks without quotes."""
        self.fake('answer')
        for line, name in (('/export ~/t.md', 't.md'), ("/export '~/t.md'", None),
                           ('/export ~/my\\ talk.md', 'my talk.md'), ('/export ~/"our talk.md"', 'our talk.md'),
                           ('/export ~/your long  talk.md', 'your long  talk.md'),
                           ("/export ~/'its talk.md'!", 'its talk.md'), ('/dump ~/the\\ dump', 'the dump'),
                           ('/save ~/my\\ chat.json', 'my chat.json'), ("/save 'long trip'", None)):
            text = self.script('a', line, code=0 if name or '/save' in line else 5)
            self.assertTrue(name is None or os.path.exists(self.in_home(name)), (line, text))
        self.assertIn("there is no directory '~'", self.script('a', "/export '~/t.md'", code=5))
        self.assertIn('2 turns loaded', self.script('a', 'b', '/save wow\\!', '/clear', '/load "wow!"'))
        self.assertEqual(self.says('--list-sessions'), b'long trip\nwow!\n')
        self.assertIn('1 turn loaded', self.script('/load long trip', '/load long\\ trip', '/load ~/"my chat.json"'))
        self.assertIn("'' is not a valid name", self.script("/save ''", code=2))
        self.assertIn('name of the file is empty', self.script("/dump ''", code=2))
        self.write_in_home('my role', 'be brief')
        for line in ('/system @~/my role', '/system @~/my\\ role', "/system @~/'my role'"):
            self.script(line)
            self.assertEqual(self.messages, [('s', 'be brief')], line)
        self.assertIn("'-' is standard input", self.script("/system @'-'", code=2))

    def test_a_chat_whose_name_has_quotes_is_found(self):
        folder = self.chats_folder()
        os.makedirs(folder)
        self.fake('answer')
        self.script('a', '/save plain')
        os.rename(os.path.join(folder, 'plain.json'), os.path.join(folder, "a\\ 'b'.json"))
        self.assertIn('1 turn loaded', self.script("/load a\\ 'b'"))

    def test_only_files_that_a_name_can_open_are_listed(self):
        folder = self.chats_folder()
        os.makedirs(folder)
        for name in ('trip', '.hidden', 'two\nlines', 'a.json', 'x' * 201):
            with open(os.path.join(folder, f'{name}.json'), 'w', encoding='utf-8'):
                pass
        self.assertEqual(self.says('--list-sessions'), b'trip\n')

    def test_missing_directories_and_directories_are_named_at_once(self):
        folder = self.path('nowhere')
        for line in (f'/save {folder}/x.json', f'/export {folder}/x.md', f'/dump {folder}/x',
                     f'/save {folder}/x.json!'):
            self.assertIn(f"there is no directory '{folder}'", self.script('a', line, code=5))
        self.assertIn(f"cannot open '{folder}/x.json': No such file", self.script(f'/load {folder}/x.json', code=5))
        self.assertIn(f"there is no directory '{folder}'", self.refuses(5, '--session', f'{folder}/x.json', '-p', 'x'))
        self.assertFalse(os.path.exists(folder))
        os.makedirs(folder + '/inner.md')
        try:
            for line in (f'/save {folder}/', f'/dump {folder}', f'/export {folder}/inner.md', f'/dump {folder}!'):
                text = self.script('a', line, code=5)
                self.assertIn('is a directory', text)
                self.assertNotIn('replaces it', text)
            with open(folder + '/file', 'w', encoding='utf-8'):
                pass
            self.assertIn('is not a directory', self.script(f'/dump {folder}/file/x', code=5))
        finally:
            shutil.rmtree(folder)
        path = os.path.join(self.chats_folder(), 'first.json')
        self.script('a', f'/save {path}')  # the program creates its own folder
        self.assertTrue(os.path.exists(path))

    def test_options_expand_the_home_directory(self):
        self.write_in_home('note', 'some notes')
        self.says('--file=~/note', '-s', '@~/note', '--log=~/log', '--session=~/x.json', '-p', 'what?')
        with open(self.in_home('x.json'), encoding='utf-8') as file:
            texts = [m['content'] for m in json.load(file)['messages']]
        self.assertEqual(texts[0], 'some notes')
        self.assertIn('File note', texts[1])
        self.assertTrue(os.path.exists(self.in_home('log')))
        os.symlink(self.model, self.in_home('m.gguf'))
        config = self.write('config', 'model = ~/m.gguf\n')
        self.env['BITNET_CHAT_CONFIG'] = config
        done = subprocess.run([PROGRAM, '-p', 'x'], env=self.env, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))

    def test_files_go_before_the_message(self):
        path = self.write('notes.txt', 'some notes\n')
        fenced = 'File notes.txt:\n```\nsome notes\n```\n\n'
        text = self.script(f'/file {path}', 'what?')
        # The size of the file, but the tokens of all that is sent. The vocabulary has a token for each byte.
        self.assertIn(f'will be sent before your next message: 11 bytes, {len(fenced)} tok', text)
        self.assertEqual(self.messages[0], ('u', fenced + 'what?'))
        self.script(f'read @{path} and @nothing')
        self.assertEqual(self.messages[0], ('u', f'{fenced}read @{path} and @nothing'))
        binary = self.write('binary', b'a\0b')
        self.assertIn('is binary', self.script(f'/file {binary}', code=2))

    def test_find_matches_lines_with_their_numbers(self):
        self.fake('nothing here\nthe Answer there', 'no')
        text = self.script('a question', 'another', '/find answer')
        self.assertIn('  1 it   the Answer there\n1 match in 1 line\n', text)

    def test_find_shows_the_text_around_each_match_of_a_long_line(self):
        words = [f'w{i:03}' for i in range(400)]
        self.fake(' '.join(words) + '\nw399 again')
        text = self.script('x', '/find w(050|053|200|399)')
        rows = re.findall(r'(?m)^  1 it   (.*)$', text)
        self.assertEqual([re.findall('w050|w053|w200|w399', row) for row in rows],
                         [['w050', 'w053'], ['w200'], ['w399'], ['w399']])
        for row in rows[:3]:
            self.assertRegex(row, r'^\.\.\.w\d{3} .*w\d{3}')
            self.assertLess(len(row), 130)
        self.assertIn('5 matches in 2 lines\n', text)
        self.assertIn('  1 it   w000 w001', self.script('x', '/find w000'))

    def test_find_refuses_a_bad_pattern(self):
        self.assertIn('the pattern has an error', self.script('a', '/find (', code=2))
        text = self.script('aB', '/find AB')
        self.assertIn('nothing matches', text)

    def clipboard(self, name='xclip', script='cat > "$HOME/clip"', **env):
        """A clipboard program that stores its input in a file."""
        folder = os.path.join(self.home.name, 'bin')
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{script}\n')
        os.chmod(file.name, 0o755)
        self.env.update(env, PATH=folder + ':/usr/bin:/bin')

    def clipped(self):
        with open(os.path.join(self.home.name, 'clip'), encoding='utf-8') as file:
            return file.read()

    def test_copy_takes_answer_code_or_all(self):
        answer = 'so:\n```c\nint x;\n```\nor\n```\ny\n```\n'
        self.clipboard(DISPLAY=':9')
        for line, said, clipped in (('/copy', 'the answer copied, 33 bytes, by xclip', answer),
                                    ('/copy last', '33 bytes', answer),
                                    ('/copy code', 'the code copied, 2 bytes', 'y\n'),
                                    ('/copy code 1', '7 bytes', 'int x;\n'),
                                    ('/copy all', 'the conversation copied',
                                     f'user:\na\n\nassistant:\n{answer}')):
            self.fake(answer)
            self.assertIn(said, self.script('a', line))
            self.assertEqual(self.clipped(), clipped)
        for line, said in (('/copy code 3', 'from 1 to 2'), ('/copy it', 'expected /copy')):
            self.assertIn(said, self.script('a', line, code=2))
        self.assertIn('nothing was said', self.script('/copy', code=2))
        self.fake('no code')
        self.assertIn('no block of code', self.script('a', '/copy code', code=2))

    def test_copy_tries_the_clipboard_programs_in_order(self):
        self.clipboard('wl-copy', 'exit 1', DISPLAY=':9', WAYLAND_DISPLAY='w')
        self.clipboard('xclip', 'exec sleep 60')
        self.clipboard('xsel')
        self.assertIn('by xsel', self.script('a', '/copy'))
        self.assertEqual(self.clipped(), 'Hello.')

    def test_copy_without_any_clipboard_is_refused(self):
        self.assertIn('no clipboard', self.script('a', '/copy', code=2))

    def test_log_holds_times_and_no_texts(self):
        path = self.path('log')
        self.fake('answer', 'other', fail_at=9)
        self.script('question', words=['--log', path])
        with open(path, encoding='utf-8') as file:
            text = file.read()
        self.assertRegex(text, r'\d\.\d{3} bitnet-chat \S+: loaded .* fake device, context 4096')
        self.assertRegex(text, r'answer: stop \[6 tok.*seed \d+\]')
        self.assertNotIn('question', text)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.script('question', words=['--log', path])
        with open(path, encoding='utf-8') as file:
            self.assertTrue(file.read().startswith(text))
        self.refuses(5, '--log', self.folder.name, '-p', 'x')

    def test_a_log_that_cannot_be_written_is_one_warning(self):
        said = b"bitnet-chat: warning: cannot write the log '/dev/full': No space left on device; it ends here\n"
        for words, warnings in (((), 1), (('-q',), 0)):
            done = self.chat('--log', '/dev/full', *words, '--lines', stdin=b'a\nb\n')
            self.assertEqual((done.returncode, done.stderr), (0, said * warnings))

    def test_info_prints_the_model_and_exits(self):
        self.fake(load_ms=50)
        self.assertRegex(self.says('--info', 'never asked').decode(),
                         r'(?s)^model .*\ndevice +fake device\nactivations int8 .*'
                         r'\ncontext +4096 tok.*template')
        sheet = json.loads(self.says('--info', '--json'))
        self.assertEqual((sheet['device'], sheet['context']), ('fake device', 4096))
        self.assertEqual(sheet['file'], self.model)
        self.fake(load_error=1)
        self.refuses(3, '--info')

    def test_commands_that_print_information(self):
        self.fake('answer')
        path = self.path('dump.txt')
        text = self.script('a', '/context', '/stats', '/info', '/tokens ab', '/dump', f'/dump {path}',
                           '/history')
        for pattern in (r'in all +\d+ tok of 4096, \d+ free', r'prompt +\d+ tok: 0 reused, \d+ eval',
                        r'device +fake device', r'97  \|a\|\n +98  \|b\|\n2 tokens', r'1> a\nanswer'):
            self.assertRegex(text, pattern)
        with open(path, encoding='utf-8') as file:
            self.assertRegex(file.read(), '(?s)<.*a.*answer')

    def test_a_script_waits_for_the_model(self):
        lines = ('/info', '/stats', '/context', '/set ctx', '/tokens ab')
        said = set()
        for load_ms in (0, 300):
            self.fake(load_ms=load_ms)
            text = self.script(*lines)
            self.assertNotIn('still loading', text)
            for word in ('device      fake device', ' of 4096, ', 'context     0 of 4096 tok', 'ctx = 4096 ('):
                self.assertIn(word, text)
            said.add(re.sub(r'[\d.]+', '', text))
        self.assertEqual(len(said), 1)
        self.fake(load_ms=100, load_error=1)
        self.assertIn("tensor 'x' is broken", self.refuses(3, '-i', stdin=b'/info\n/quit\n'))

    def test_stats_show_what_a_second_turn_reuses(self):
        self.fake('answer', 'other')
        text = self.script('a', 'b', '/stats')
        self.assertRegex(text, r'prompt +\d+ tok: [1-9]\d* reused, [1-9]\d evaluated')

    def test_stats_are_compared_with_the_peak_of_the_device(self):
        self.fake('answer')
        text = self.script('a', '/stats')
        self.assertRegex(text, r'(?m)^ *reads +5\.0 MB a token, [\d.]+ GB/s$')
        self.assertRegex(text, r'(?m)^ *multiplies +[\d.]+ GMAC/s in the prompt$')
        self.assertRegex(text, r'(?m)^ *memory +[\d.]+ MB: private [\d.]+ MB, mapped files ')
        self.assertRegex(text, r'(?m)^ *gaps +between tokens: p50 [\d.]+ ms, p95 [\d.]+ ms, p99 [\d.]+ ms$')
        self.assertNotIn('gaps', self.script('a', '/stats', words=('-n', '1')))  # one token has none
        self.fake('answer', token_ms=2, read_us=1000)
        text = self.script('a', '/stats peak')
        self.assertRegex(text, r'(?m)GB/s, \d+ % of the 40\.0 GB/s this device can do$')
        self.assertRegex(text, r'(?m)prompt, \d+ % of the 400\.0 GMAC/s this device can do$')
        self.assertIn('reads 40.0 GB/s and computes 400.0 GMAC/s; there', self.script('/stats peak'))
        self.assertIn('/stats or /stats peak', self.script('/stats peaks', code=2))

    def test_a_rate_above_the_peak_is_called_disturbed(self):
        self.fake('answer', peak_gb=1, work=100000)  # so much that no machine is too slow to exceed the peak
        text = self.script('a', '/stats peak')
        self.assertRegex(text, r'(?m)GB/s, disturbed: /stats peak measured only 1\.0 GB/s$')
        self.assertRegex(text, r'(?m)prompt, disturbed: /stats peak measured only 10\.0 GMAC/s$')
        self.assertNotIn('%', text)

    def test_probs_is_switched_on_and_off(self):
        self.fake('ab')
        text = self.script('/probs 2', 'a', '/probs off', words=['--logprobs', '1'])
        self.assertIn('2 likeliest', text)
        self.assertIn('no longer', text)


if __name__ == '__main__':
    main()
