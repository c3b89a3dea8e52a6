#!/usr/bin/env python3
"""
test_chat_saving.py CHAT MAKE_MODEL: files that the chat writes are complete or unchanged after a full disk or a
kill. With a scripted generator.
"""
import fcntl
import json
import os
import re
import resource
import signal
import subprocess

from support.program_case import PROGRAM, main
from support.terminal_case import PAINTERS, TerminalCase


def limit_files_to(n_bytes):
    """A function for preexec_fn: writes beyond this size of a file fail, as on a full disk."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    return limit


class Saving(TerminalCase):
    def chat_on_full_disk(self, n_bytes, *words, stdin=b''):
        return subprocess.run([PROGRAM, self.model, *words], input=stdin, capture_output=True, timeout=60,
                              env=self.env, check=False, preexec_fn=limit_files_to(n_bytes))

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def test_export_and_dump_keep_the_old_file_on_a_full_disk(self):
        self.fake('long answer ' * 300)
        for command, name in (('export', 'old.md'), ('dump', 'old')):
            path = self.write(name, 'precious')
            done = self.chat_on_full_disk(1000, '--private', '-i', stdin=f'x\n/{command} {path}!\n'.encode())
            self.assertRegex(done.stderr, rb"cannot write '.*old.*': File too large")
            self.assertEqual(self.read(name), b'precious')
            os.unlink(path)
            self.chat_on_full_disk(1000, '--private', '-i', stdin=f'x\n/{command} {path}\n'.encode())
            self.assertFalse(os.path.exists(path))
            self.assertEqual([n for n in os.listdir(self.folder.name) if n.startswith('old')], [])

    def test_exported_files_can_be_read_only_by_their_owner(self):
        path = self.write('open.md', 'old')
        os.chmod(path, 0o644)
        self.chat('-i', stdin=f'x\n/export {path}!\n'.encode())
        self.assertIn(b'Hello.', self.read('open.md'))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_export_to_a_device_is_refused(self):
        done = self.chat('-i', stdin=b'x\n/dump /dev/null!\n')
        self.assertIn(b"cannot write '/dev/null': it is not a regular file", done.stderr)

    def test_lines_on_a_full_disk_print_the_error_and_exit_with_5(self):
        self.fake('one', 'two')
        for words in ((), ('-q',)):
            done = self.chat_on_full_disk(0, '--lines', '--session', self.path('none.json'), *words, stdin=b'a\nb\n')
            self.assertEqual((done.returncode, done.stdout), (5, b'one\n'), done.stderr)
            self.assertRegex(done.stderr, rb"\Abitnet-chat: cannot write '.*none.json': File too large; "
                                          rb'the chat is not saved\n\Z')

    def turns_of(self, name):
        """The questions of a saved chat."""
        done = self.chat('--load', self.path(name), '-i', stdin=b'/history\n')
        return re.findall(r'(?m)^\d+> (.*)$', done.stderr.decode())

    def test_undo_of_load_or_clear_returns_to_the_saved_chat(self):
        first, second = self.path('undo1.json'), self.path('undo2.json')
        self.chat('--session', second, '-i', stdin=b'one\ntwo\n')
        done = self.chat('--session', first, '-i', stdin=f'a\n/load {second}\n/undo\nb\n/clear\nlost\n/undo\n'
                         f'/undo\nc\n/load {second}\n/undo\n/redo\nthree\n'.encode())
        self.assertEqual(done.stderr.count(f'saved in {first} again'.encode()), 3, done.stderr)
        self.assertEqual(done.stderr.count(f'saved in {second} again'.encode()), 1, done.stderr)
        self.assertEqual(self.turns_of('undo1.json'), ['a', 'b', 'c'])
        self.assertEqual(self.turns_of('undo2.json'), ['one', 'two', 'three'])

    def test_undo_does_not_return_to_a_saved_chat_that_has_changed(self):
        path = self.path('changed.json')
        for is_used in (False, True):
            self.chat('--session', path, '-i', stdin=b'/clear\n')
            terminal = self.open('--session', path)
            terminal.expect(rb'loaded in')
            self.ask(terminal, 'mine')
            terminal.send(b'/clear\r')
            terminal.expect(rb'keeps\s+the')
            if is_used:
                other = self.open('--session', path)
                other.expect(rb'loaded in')
            else:
                self.chat('--session', path, '-p', 'of another')
            terminal.send(b'/undo\r')
            terminal.expect(rb'is\s+in\s+use\s+by' if is_used else rb'was\s+changed')
            self.ask(terminal, 'not saved')
            terminal.send(b'\x04')
            terminal.wait()
            if is_used:
                other.send(b'\x04')
                other.wait()
            self.assertNotIn('not saved', self.turns_of('changed.json'))
            self.assertIn('of another', self.turns_of('changed.json'))

    def test_a_chat_with_a_name_that_cannot_be_saved_ends_with_5(self):
        terminal = self.open('--session', '/proc/none.json')
        terminal.expect(rb'loaded in')
        self.ask(terminal, 'x')
        self.assertRegex(terminal.seen, rb'the\s+chat\s+is\s+not\s+saved\s+there')
        terminal.send(b'\x04')
        self.left_clean(terminal, 5)

    def full_terminal(self, *words):
        """A chat that can write at most 2048 bytes to a file."""
        return self.start(['sh', '-c', 'trap "" XFSZ; ulimit -f 4; exec "$0" "$@"', PROGRAM, self.model, *words])

    def test_the_end_of_a_chat_that_cannot_be_saved_is_refused_once(self):
        for words in PAINTERS:
            for keys in (b'/quit\r', b'\x04'):
                self.fake('one', 'long ' * 500, 'three')
                terminal = self.full_terminal('--session', self.path('lost.json'), *words)
                terminal.expect(rb'loaded in')
                self.says_in(terminal, b'a\r')
                for text in (b'b\r', b'c\r'):  # refused again after a new message
                    self.says_in(terminal, text)
                    said = self.says_in(terminal, keys, rb'not\s+saved:(?s:.*)without\s+them')
                    self.assertRegex(said, rb'/save\s+FILE\s+saves')
                self.says_in(terminal, b'/help quit\r', rb'on\s+an\s+empty')
                terminal.send(keys)
                self.left_clean(terminal, 5)
                os.unlink(self.path('lost.json'))
                os.unlink(self.path('lost.json.journal'))

    def test_clear_does_not_lose_a_chat_that_cannot_be_saved(self):
        for end in (b'\x04', b'/undo\r'):
            self.fake('one', 'long ' * 500, 'three')
            terminal = self.full_terminal('--session', self.path('lost.json'))
            terminal.expect(rb'loaded in')
            for text in (b'a\r', b'b\r'):
                self.says_in(terminal, text)
            said = self.says_in(terminal, b'/clear\r', rb'/undo\s+brings\s+it\s+back')
            self.assertRegex(said, rb'the\s+last\s+turns\s+of\s+this\s+chat\s+are\s+not\s+saved')
            self.assertNotRegex(said, rb'keeps\s+the\s+conversation')
            self.says_in(terminal, b'\x04', rb'an\s+earlier\s+chat\s+could\s+not\s+be\s+saved;\s+/undo')
            if end == b'/undo\r':
                self.says_in(terminal, end, rb'2\s+turns\s+left')
            else:
                terminal.send(end)
                self.left_clean(terminal, 5)
            os.unlink(self.path('lost.json'))
            if os.path.exists(self.path('lost.json.journal')):
                os.unlink(self.path('lost.json.journal'))

    def test_a_deleted_chat_is_written_again_as_a_whole(self):
        self.fake('one', 'two', 'three')
        path = self.path('deleted.json')
        for name in (path, path + '.journal'):
            terminal = self.ready('--session', path)
            for text in (b'a\r', b'b\r'):
                self.says_in(terminal, text)
            os.unlink(name)
            self.says_in(terminal, b'c\r')
            self.assertEqual(self.turns_of('deleted.json')[-3:], ['a', 'b', 'c'])
            self.leave(terminal)
            os.unlink(path)

    def test_a_chat_that_its_journal_keeps_is_not_lost(self):
        """The disk has space for the journal, but not for a new file, which is longer."""
        self.fake('long ' * 60)
        path = self.path('journal.json')
        for text in (b'a\r', b''):
            terminal = self.full_terminal('--session', path)
            terminal.expect(rb'loaded in')
            if text:
                self.says_in(terminal, text)
            terminal.send(b'\x04')
            self.left_clean(terminal, 5)
            self.assertRegex(terminal.seen, rb'its\s+journal\s+keeps\s+the\s+chat')
            self.assertNotRegex(terminal.seen, rb'continues|last\.json')
        self.assertEqual(self.turns_of('journal.json'), ['a'])

    def chat_of_another_model(self, name):
        """A saved chat with two turns, whose ids are of another vocabulary. Returns its path."""
        self.fake('one', 'two')
        path = self.path(name)
        self.chat('--session', path, '-i', stdin=b'a\nb\n')
        with open(path, encoding='utf-8') as file:
            stored = json.load(file)
        self.assertEqual([len(m['ids']) for m in stored['messages'][1::2]], [3, 3])
        stored['vocabulary'] = '0' * 16
        return self.write(name, json.dumps(stored))

    def test_a_chat_that_is_the_same_at_the_end_keeps_its_ids(self):
        """Refused messages and undone changes do not change the file, also if the model is another one."""
        path = self.chat_of_another_model('other.json')
        before = self.read('other.json')
        long = b'x' * 500
        for code, words, stdin in ((4, ('-p', long), b''), (4, ('--lines',), long),
                                   (4, ('-i',), long + b'\n/history\n' + long), (0, ('-i',), b'/undo\n/redo\n'),
                                   (0, ('-i',), b'c\n/undo\n'), (0, ('-i',), b'/retry\n/undo\n')):
            done = self.chat('--session', path, '--ctx', '200', '--keep-going', *words, stdin=stdin)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(self.read('other.json'), before, (words, stdin))
            self.assertFalse(os.path.exists(path + '.journal'))

    def test_a_message_refused_after_loading_leaves_the_file(self):
        path = self.chat_of_another_model('waits.json')
        before = self.read('waits.json')
        gate = self.gate()
        self.fake('three', load_until=gate)
        terminal = self.open('--session', path, '--ctx', '200')
        terminal.send('x' * 500 + '\r')
        self.read_until(terminal, lambda: os.path.exists(path + '.journal'))  # a kill would not lose it
        self.write('gate', '')
        terminal.expect(rb'context\s+has\s+only')
        terminal.send(b'\x03')  # empties the editor, to which the message has returned
        self.leave(terminal)
        self.assertEqual(self.read('waits.json'), before)
        self.assertFalse(os.path.exists(path + '.journal'))

    def test_a_refused_message_makes_no_file(self):
        for words in (('-p', 'x' * 500), ('--lines',)):
            self.chat('--session', self.path('none.json'), '--ctx', '200', *words, stdin=b'x' * 500)
            self.assertFalse(os.path.exists(self.path('none.json')))

    def test_a_write_protected_chat_stays(self):
        path = self.path('protected.json')
        self.chat('--session', path, '-p', 'one')
        before = self.read('protected.json')
        os.chmod(path, 0o400)
        done = self.chat('--session', path, '-p', 'two')
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(b'is write-protected', done.stderr)
        self.assertEqual((self.read('protected.json'), os.stat(path).st_mode & 0o777), (before, 0o400))
        self.assertFalse(os.path.exists(path + '.journal'))  # it would have a turn that "is not saved"

    def test_a_name_is_one_line(self):
        for name, fault in (('a\nb', 'it has a control character'), ('.x', 'it begins with a dot'),
                            ('', 'it is empty'), ('x' * 201, 'it is longer than 200 bytes')):
            said = self.refuses(2, '--session', name, '-p', 'x')
            self.assertRegex(said, rf'is not a valid name for a saved chat: {fault}\n\Z')
        self.assertIn(f"'{'x' * 40}...' is", said)

    def test_temporary_files_of_killed_runs_are_removed_at_the_start(self):
        left = [os.path.join(self.home.name, name) for name in (
            '.local/state/bitnet-chat/last.json.tmp-abcdef',
            '.local/share/bitnet-chat/sessions/trip.json.tmp-rW3xKz', '.cache/bitnet-chat/kv/ab12.kv.tmp-Zx81qR')]
        kept = [os.path.join(self.chats_folder(), name) for name in ('trip.json.backup', 'trip.json.notes1')]
        for path in (*left, *kept):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb'):
                pass
        self.chat('-p', 'x')
        self.assertEqual([path for path in left if os.path.exists(path)], [])
        self.assertEqual([path for path in kept if not os.path.exists(path)], [])


class History(TerminalCase):
    def with_history(self, lines):
        self.write_in_home('.local/state/bitnet-chat/history', ''.join(f'{line}\n' for line in lines))

    def lines(self):
        with open(self.state('history'), encoding='utf-8') as file:
            return file.read().splitlines()

    def test_a_full_disk_does_not_lose_a_long_history(self):
        self.with_history(f'entry number {i}' for i in range(1500))
        self.run_on_full_disk()
        self.assertEqual(len(self.lines()), 1500)
        self.leave(self.ready())
        self.assertEqual(self.lines(), [f'entry number {i}' for i in range(500, 1500)])

    def run_on_full_disk(self):
        words = ['sh', '-c', 'trap "" XFSZ; ulimit -f 1; exec "$0" "$@"', PROGRAM, self.model]
        terminal = self.start(words)
        terminal.expect(rb'loaded in')
        self.leave(terminal)

    def test_a_fifo_instead_of_a_history_is_one_warning(self):
        os.makedirs(os.path.dirname(self.state('x')))
        os.mkfifo(self.state('history'))
        terminal = self.ready()
        self.ask(terminal, 'x')
        self.assertEqual(terminal.seen.count(b'cannot use'), 1)
        self.leave(terminal)

    def test_a_history_above_16_mib_is_read_and_trimmed(self):
        self.with_history(['x' * 1000] * 20000 + ['findme'])
        terminal = self.ready()
        terminal.send(b'\x1b[A')
        terminal.expect(rb'findme')
        terminal.send(b'\x03')
        self.leave(terminal)
        self.assertEqual((len(self.lines()), self.lines()[-1]), (1000, 'findme'))

    def test_a_lock_of_another_process_never_waits(self):
        self.with_history(f'entry {i}' for i in range(1200))
        self.fake('one', 'two')
        with open(self.state('history'), 'rb') as history, open(self.state('history.lock'), 'wb') as lock:
            fcntl.flock(history, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX)
            terminal = self.ready()
            self.ask(terminal, 'during the lock')
            self.assertEqual(len(self.lines()), 1200)
            fcntl.flock(lock, fcntl.LOCK_UN)
            self.ask(terminal, 'after the lock')
            self.assertEqual(self.lines()[1200:], ['during the lock', 'after the lock'])
        self.leave(terminal)


if __name__ == '__main__':
    main()
