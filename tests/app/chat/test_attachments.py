#!/usr/bin/env python3
"""
test_attachments.py CHAT MAKE_MODEL: files that go before a message: /file, @path and --file. With a scripted
generator; a token is a byte.
"""
import json
import os
import re

from support.chat_case import ChatCase
from support.program_case import main
from support.terminal_case import PAINTERS, PROMPT, TerminalCase


class Scripts(ChatCase):
    def script(self, *lines, words=(), code=0):
        """Run the lines. Returns the standard error; self.messages has the texts of the user."""
        path = self.path('session.json')
        if os.path.exists(path):
            os.unlink(path)
        done = self.chat('-i', *words, stdin='\n'.join((*lines, f'/save {path}')).encode())
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.messages = None
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                self.messages = [m['content'] for m in json.load(file)['messages'] if m['role'] == 'user']
        return text

    @staticmethod
    def fenced(name, text):
        return f'File {name}:\n```\n{text}```\n\n'

    def test_a_file_that_cannot_fit_is_refused_with_numbers(self):
        """The next message is sent without it, and @path is refused in the same way."""
        self.fake('ok', n_ctx=1000)
        big, small = self.write('big.txt', 'b' * 900), self.write('small.txt', 's' * 400)
        said = r"big.txt' does not fit: it has 9\d\d tok, and 8\d\d of the 1000 tok of the context are free"
        self.assertRegex(self.script(f'/file {big}', code=4), said)
        self.assertRegex(self.script(f'see @{big}', code=4), said)
        self.assertRegex(self.script(f'/file {small}', f'/file {self.write("copy.txt", "s" * 430)}', code=4),
                         r"copy.txt' does not fit: it has 4\d\d tok, and 4\d\d of the .* beside the other files")
        text = self.script(f'/file {small}', '/file')
        self.assertRegex(text, r' 1      4\d\d tok  .*small.txt\nin all 4\d\d of the 8\d\d tok that are free')
        self.assertRegex(self.script('x' * 500, f'/file {small}', code=4), r'4\d\d tok, and 3\d\d of the 1000')
        self.script('x' * 500, '/set overflow drop', f'/file {small}', 'y')  # the first turn can be dropped

    def test_an_empty_file_gives_a_warning(self):
        """A file that has only blanks or a byte order mark has no text, either."""
        empty, full, blank = (self.write('empty.txt', ''), self.write('full.txt', 'x'),
                              self.write('blank.txt', '\ufeff \t\r\n'))
        for lines, words in ((('x',), ('--file', empty, '--file', full)), ((f'/file {empty}', 'x', 'y'), ()),
                             ((f'see @{empty} and @{full}', 'y'), ())):
            text = self.script(*lines, words=words)
            self.assertEqual(re.findall(r"'(.*)' is empty\n", text), [empty], text)
            self.assertIn('File empty.txt:\n```\n```\n\n', self.messages[0])
            text = self.script(*(line.replace(empty, blank) for line in lines),
                               words=[word.replace(empty, blank) for word in words])
            self.assertEqual(re.findall(r"'(.*)' has no text\n", text), [blank], text)
        self.assertNotRegex(self.script(f'see @{full}'), 'is empty|has no text')
        for words, stdin, said in ((['-f', empty, '-f', full], None, f"bitnet-chat: warning: '{empty}' is empty\n"),
                                   (['-f', '-'], b'', 'bitnet-chat: warning: standard input is empty\n'),
                                   (['-f', blank], None, f"bitnet-chat: warning: '{blank}' has no text\n"),
                                   (['-f', '-'], b' \n', 'bitnet-chat: warning: standard input has no text\n'),
                                   ([], b'', ''), (['-f', '-'], b'x', ''), (['-q', '-f', empty], None, '')):
            done = self.chat(*words, 'what is this?', stdin=stdin)
            self.assertEqual((done.returncode, done.stderr.decode()), (0, said), words)

    def test_without_an_editor_edit_does_not_attach_the_files_to_the_next_message(self):
        self.fake('one', 'two')
        more = self.write('more.txt', 'more notes\n')
        text = self.script('about it', '/edit', 'other', words=('--file', more))
        self.assertIn('more.txt is not attached', text)
        self.assertEqual(self.messages, ['other'])

    def test_files_are_listed_and_removed(self):
        one, two = self.write('one.txt', '1\n'), self.write('two.txt', '2\n')
        text = self.script(f'/file {one} {two}', '/file', '/context', '/file off 1', '/file', 'x')
        self.assertEqual(len(re.findall(r'\d tok  .*one\.txt\n', text)), 2, text)
        self.assertEqual(len(re.findall(r'\d tok  .*two\.txt\n', text)), 3, text)
        self.assertRegex(text, r'attached +\d+ tok  .*one.txt\n')
        self.assertIn('one.txt will not be sent', text)
        self.assertEqual(self.messages, [self.fenced('two.txt', '2\n') + 'x'])
        text = self.script(f'/file {one} {two}', '/file off', '/file', 'x')
        self.assertIn('2 files will not be sent', text)
        self.assertIn('no file is attached', text)
        self.assertEqual(self.messages, ['x'])
        self.assertIn('no file is attached', self.script('/file off', code=2))
        self.assertIn('from 1 to 1', self.script(f'/file {one}', '/file off 2', code=2))

    def test_a_file_is_never_attached_twice(self):
        one = self.write('one.txt', '1\n')
        other = os.path.join(self.folder.name, '.', 'one.txt')
        text = self.script(f'/file {one}', f'/file {other}', f'@{one} and @{other}')
        self.assertIn('is attached already', text)
        self.assertEqual(self.messages, [self.fenced('one.txt', '1\n') + f'@{one} and @{other}'])
        self.script(f'@{one}', 'more', f'@{one}')  # a later message may attach it again
        self.assertEqual([m.count('File one.txt') for m in self.messages], [1, 0, 1])

    def test_quoted_and_escaped_paths(self):
        folder = os.path.join(self.folder.name, 'a folder')
        os.makedirs(folder, exist_ok=True)
        for name in ("it's my.txt", 'a "b".txt', 'back\\slash.txt', 'plain.txt'):
            self.write(os.path.join('a folder', name), name)
        both = [self.fenced("it's my.txt", "it's my.txt\n"), self.fenced('plain.txt', 'plain.txt\n')]
        escaped = folder.replace(' ', '\\ ')
        for first, second in ((f"'{folder}/it'\\''s my.txt'", f"'{folder}/plain.txt'"),
                              (f'"{folder}/it\'s my.txt"', f'"{folder}/plain.txt"'),
                              (f"{escaped}/it\\'s\\ my.txt", f'{escaped}/plain.txt')):
            self.script(f'/file {first} {second}', 'x')
            self.assertEqual(self.messages, [''.join(both) + 'x'], first)
            self.script(f'see @{first}, then @{second}.')
            self.assertEqual(self.messages, [''.join(both) + f'see @{first}, then @{second}.'], first)
        for name in ('a "b".txt', 'back\\slash.txt', "it's my.txt"):
            self.script(f'/file {folder}/{name}', 'x')  # one path, as it is
            self.assertIn(f'File {name}', self.messages[0])
        self.script(f'/file {escaped}/back\\\\slash.txt "{folder}/a \\"b\\".txt"', 'x')
        self.assertEqual(self.messages[0].count('File '), 2)
        self.env['HOME'] = folder
        self.script('/file ~/plain.txt', 'x')
        self.assertIn('File plain.txt', self.messages[0])

    def test_bad_files_and_directories_are_named_and_not_sent(self):
        latin = self.write('latin.txt', b'caf\xe9\n')
        dos = self.write('dos.txt', b'a\r\nb\r\ncaf\xe9\r\n')
        folder = os.path.join(self.folder.name, 'sub.d')
        os.makedirs(folder, exist_ok=True)
        fifo = self.path('fifo')
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        for path, said in ((latin, "latin.txt' is not valid UTF-8 at offset 3"), (folder, "sub.d' is a directory"),
                           (dos, "dos.txt' is not valid UTF-8 at offset 9"),
                           (self.write('binary', b'a\0b'), 'is binary'), (self.path('none.x'), 'No such file')):
            code = 5 if path in (folder, self.path('none.x')) else 2
            self.assertIn(said, self.script(f'/file {path}', 'never', code=code))
            self.assertIsNone(self.messages)
            if path != self.path('none.x'):
                self.assertIn(said, self.script(f'see @{path}', 'never', code=code))
        self.assertIn('not a regular file', self.script(f'/file {fifo}', code=5))
        self.assertIn('not valid UTF-8', self.refuses(2, '-f', latin, '-p', 'x'))
        self.assertIn('is a directory', self.refuses(5, '-f', folder, '-p', 'x'))
        self.assertIn('it is sent as text', self.script('see @no/such.txt and @sub and @anna'))

    def test_a_path_in_a_prompt_is_text(self):
        path = self.write('real.txt', '1\n')
        for words, stdin in ((['-p', f'see @{path}'], b''), ([], f'see @{path}'.encode()),
                             (['--lines'], f'see @{path}\n'.encode())):
            session = os.path.join(self.home.name, 'text.json')
            self.says('--session', session, *words, stdin=stdin)
            self.assertEqual(self.saved(session)[0]['content'], f'see @{path}')
            os.unlink(session)

    def test_a_missing_quoted_path_is_named_without_its_quotes(self):
        for word, name in (('"my notes.txt"', 'my notes.txt'), ("'my notes.txt'", 'my notes.txt'),
                           (r'my\ notes.txt', 'my notes.txt'), ('sub/"my notes"', 'sub/my notes')):
            text = self.script(f'look at @{word} now')
            self.assertIn(f'@{name} is not a file; it is sent as text', text)
            self.assertEqual(self.messages, [f'look at @{word} now'])

    def test_an_apostrophe_in_a_word_hides_no_path(self):
        one = self.write('one.txt', '1\n')
        text = self.script(f"@anna's text is in @{one}, isn't it?")
        self.assertNotIn('it is sent as text', text)
        self.assertEqual(self.messages, [self.fenced('one.txt', '1\n') + f"@anna's text is in @{one}, isn't it?"])

    def test_a_path_in_brackets_or_quotation_marks_is_attached(self):
        one, other = self.write('one.txt', '1\n'), self.write('other(2).txt', '2\n')
        both = self.fenced('one.txt', '1\n') + self.fenced('other(2).txt', '2\n')
        for said in (f'see (@{one}), [@{other}].', f'"@{one}" and "@{other}"!', f"('@{one}', {{@{other}}})"):
            text = self.script(said)
            self.assertEqual(self.messages, [both + said])
            self.assertNotIn('sent as text', text)

    def test_a_missing_path_in_brackets_is_named_without_them(self):
        for said in ('see (@no-such.txt), ok?', '[@no-such.txt]', '{@no-such.txt}'):
            self.assertIn('@no-such.txt is not a file; it is sent as text', self.script(said))
            self.assertEqual(self.messages, [said])

    def test_addresses_and_source_code_are_no_paths(self):
        folder = os.path.join(self.folder.name, 'scope')
        os.makedirs(folder, exist_ok=True)
        for said in ('mail (me@example.com) or "me"@example.com', 'the (@decorator) and {@link Name}',
                     "import x from '@scope/name' and \"@a.b\"", '"$@" ${words[@]} [@] (@)', f'"@{folder}"'):
            self.assertNotIn('sent as text', self.script(said))
            self.assertEqual(self.messages, [said])

    def test_the_file_option_attaches_to_the_first_message_of_a_script(self):
        one = self.write('one.txt', '1\n')
        self.script('x', 'y', words=('-f', one))
        self.assertEqual(self.messages, [self.fenced('one.txt', '1\n') + 'x', 'y'])
        self.assertIn('No such file', self.refuses(5, '-i', '-f', self.path('none'), stdin=b'x'))
        self.assertIn('standard input', self.refuses(2, '-i', '-f', '-', stdin=b'x'))

    def test_history_shows_what_was_typed(self):
        one = self.write('one.txt', 'secret\n')
        text = self.script(f'/file {one}', 'read it', '/history')
        self.assertRegex(text, r'1> \[attached files: \d+ bytes\] read it\n')
        self.assertNotIn('secret', text)

    def test_a_session_edited_by_hand_has_no_typed_text(self):
        """What was typed is used only if it is still the end of the message."""
        one, path = self.write('one.txt', 'secret\n'), self.path('edited.json')
        self.script(f'see @{one}', f'/save {path}!')
        for content, shown in (('secret and see @x', 'secret and'), ('see', '1> see\n'), ('', '1> \n')):
            with open(path, encoding='utf-8') as file:
                chat = json.load(file)
            self.assertEqual(chat['messages'][0]['typed'], f'see @{one}')
            chat['messages'][0]['content'] = content
            edited = self.write('other.json', json.dumps(chat))
            text = self.chat('-i', '--load', edited, stdin=b'/history\n').stderr.decode()
            self.assertIn(shown, text)
            self.assertNotIn('attached files', text)


class Terminals(TerminalCase):
    def files(self):
        return self.write('notes.txt', 'some notes\n'), self.write('more.txt', 'more notes\n')

    def check_once(self, message, typed):
        self.assertEqual(message.count('some notes'), 1, message)
        self.assertEqual(message.count('more notes'), 1, message)
        self.assertTrue(message.endswith('```\n\n' + typed), message)

    def test_esc_before_the_first_token_restores_what_was_typed(self):
        notes, more = self.files()
        for words in PAINTERS:
            self.fake(b'\x1d', 'ok', hold=self.gate(), begun=self.gate('begun'))
            terminal = self.ready(*words)
            self.says_in(terminal, f'/file {more}\r'.encode(), rb'will be sent')
            terminal.send(f'see @{notes}\r'.encode())
            self.read_until(terminal, lambda: os.path.exists(self.path('begun')))
            start = len(terminal.seen)
            terminal.send(b'\x1b')
            terminal.expect(rb'attached again(?s:.*)see @(?s:.*)notes\.txt', start=start)
            self.assertNotIn(b'some notes', terminal.seen)
            self.says_in(terminal, b' now\r')
            self.leave(terminal)
            self.assertEqual(len(self.messages()), 1)
            self.check_once(self.messages()[0], f'see @{notes} now')

    def test_the_files_of_a_message_that_is_not_in_the_editor_are_not_attached(self):
        """They would be sent with the text that the user has typed."""
        more = self.files()[1]
        for words in PAINTERS:
            self.fake(b'\x1d', 'ok', hold=self.gate(), begun=self.gate('begun'))
            terminal = self.ready(*words)
            self.says_in(terminal, f'/file {more}\r'.encode(), rb'will be sent')
            terminal.send(b'about it\r')
            self.read_until(terminal, lambda: os.path.exists(self.path('begun')))
            terminal.send(b'half')
            terminal.settle()
            self.says_in(terminal, b'\x1b', rb'not sent: about it(?s:.*)more\.txt is not\s+attached')
            self.assertNotIn(b'attached again', terminal.seen)
            self.says_in(terminal, b'\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['half'])

    def test_edit_restores_what_was_typed_also_from_a_file(self):
        notes, more = self.files()
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words)
            self.says_in(terminal, f'/file {more}\r'.encode(), rb'will be sent')
            self.says_in(terminal, f'see @{notes}\r'.encode())
            self.says_in(terminal, b'/edit\r', rb'attached again(?s:.*)see @(?s:.*)notes\.txt')
            self.says_in(terminal, b' now\r')
            self.leave(terminal)
            self.check_once(self.messages()[0], f'see @{notes} now')
            terminal = self.ready('-C', *words)
            self.says_in(terminal, b'/edit\r', rb'attached again(?s:.*)see @(?s:.*)notes\.txt')
            self.says_in(terminal, b' again\r')
            self.leave(terminal)
            self.check_once(self.messages()[0], f'see @{notes} now again')
            self.assertEqual(len(self.messages()), 1)

    def test_undo_of_edit_takes_the_files_back(self):
        notes, more = self.files()
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words)
            self.says_in(terminal, f'/file {more}\r'.encode(), rb'will be sent')
            self.says_in(terminal, b'first\r')
            self.says_in(terminal, b'/edit\r', rb'attached again(?s:.*)first')
            terminal.send(b'\x03')
            self.says_in(terminal, f'/file {notes}\r'.encode(), rb'will be sent')
            self.says_in(terminal, b'/undo\r', rb'no\s+longer\s+attached')
            self.says_in(terminal, b'second\r')
            self.leave(terminal)
            first, second = self.messages()
            self.assertIn('more notes', first)
            self.assertIn('notes.txt', second)
            self.assertNotIn(os.path.basename(more), second)

    def test_a_directory_is_named_and_the_message_returns(self):
        """Also a name without a slash."""
        folder = os.path.join(self.folder.name, 'work')
        os.makedirs(os.path.join(folder, 'docs'), exist_ok=True)
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words, folder=folder)
            self.says_in(terminal, b'see @docs\r', rb'is(?s:.*)directory')
            self.says_in(terminal, b'\x15see @anna\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['see @anna'])

    def test_standard_input_is_not_attached(self):
        """Also if there is a file of that name."""
        folder = os.path.join(self.folder.name, 'dash')
        os.makedirs(folder, exist_ok=True)
        self.write('dash/-', 'some notes\n')
        self.fake('ok')
        terminal = self.ready(folder=folder)
        self.says_in(terminal, b'/file -\r', rb"'-' is standard input")
        self.says_in(terminal, b'see @-\r', rb"'-' is standard input")
        self.says_in(terminal, b'\x15/file ./-\r', rb'will be sent')
        self.says_in(terminal, b'hello\r')
        self.leave(terminal)
        self.assertEqual(self.messages(), ['File -:\n```\nsome notes\n```\n\nhello'])

    def test_tab_completes_names_with_blanks(self):
        """An apostrophe earlier in the message begins no quoted path."""
        folder = os.path.join(self.folder.name, 'blanks')
        os.makedirs(os.path.join(folder, 'sub dir'), exist_ok=True)
        self.write('blanks/my notes.txt', 'some notes\n')
        self.write("blanks/sub dir/it's.txt", 'more notes\n')
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words, folder=folder)
            self.says_in(terminal, b"/file sub\\ d\tit\t", rb"it\\'s\.txt")
            self.says_in(terminal, b'\r', rb'will be sent')
            self.says_in(terminal, b"don't @m\t", rb'my\\ notes\.txt')
            self.says_in(terminal, b'now\r')
            self.leave(terminal)
            self.check_once(self.messages()[0], "don't @my\\ notes.txt now")

    def test_up_recalls_what_was_typed(self):
        notes, _ = self.files()
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready(*words)
            self.says_in(terminal, f'see @{notes}\r'.encode())
            self.says_in(terminal, b'\x1b[A', rb'see @')
            self.says_in(terminal, b' now\r')
            self.leave(terminal)
            self.assertEqual([m.count('some notes') for m in self.messages()], [1, 1])
            self.assertTrue(self.messages()[1].endswith(f'\n\nsee @{notes} now'))

    def test_a_file_that_is_too_large_leaves_the_chat_usable(self):
        """Also while the model loads, when the size of the context is not known."""
        for words in PAINTERS:
            big = self.write('big.txt', 'b' * 900)
            self.fake('ok', n_ctx=1000, load_until=self.gate())
            terminal = self.open(*words)
            terminal.expect(PROMPT)
            self.says_in(terminal, f'/file {big}\r'.encode(), rb'will be sent')
            start = len(terminal.seen)
            self.write('gate', '')
            terminal.expect(rb'does(?s:.*)not(?s:.*)fit', start=start)
            self.says_in(terminal, f'/file {big}\r'.encode(), rb'does(?s:.*)not(?s:.*)fit')
            self.says_in(terminal, f'see @{big}\r'.encode(), rb'does(?s:.*)not(?s:.*)fit')
            self.says_in(terminal, b'\x15hello\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['hello'])

    def test_a_message_that_is_too_long_with_its_files_names_file_off(self):
        for words in PAINTERS:
            small, path = self.write('small.txt', 's' * 500), self.write('path.txt', 'p' * 100)
            self.fake('ok', n_ctx=1000)
            terminal = self.ready(*words)
            self.says_in(terminal, f'/file {small}\r'.encode(), rb'will be sent')
            self.says_in(terminal, b'x' * 400 + b'\r', rb'/file off(?s:.*)5\d\d tok')
            # /file off does not remove the file of a path in the message.
            self.says_in(terminal, b'\x15' + b'x' * 280 + f' @{path}\r'.encode(), rb'/file off(?s:.*)5\d\d tok')
            self.says_in(terminal, b'\x15/file off\r', rb'1 file will not be sent')
            self.says_in(terminal, b'short\r')
            self.leave(terminal)
            self.assertEqual(self.messages(), ['short'])

    def test_the_file_option_attaches_to_the_first_message(self):
        notes, _ = self.files()
        for words in PAINTERS:
            self.fake('ok')
            terminal = self.ready('-i', '-f', notes, *words)
            self.says_in(terminal, b'/file\r', rb'tok  (?s:.*)notes\.txt')
            self.says_in(terminal, b'what?\r')
            self.leave(terminal)
            self.assertEqual(self.messages()[0], 'File notes.txt:\n```\nsome notes\n```\n\nwhat?')


if __name__ == '__main__':
    main()
