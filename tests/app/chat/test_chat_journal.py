#!/usr/bin/env python3
"""
test_chat_journal.py CHAT MAKE_MODEL: questions and answers survive a kill, two chats never overwrite each
other, and the time of a turn does not depend on the length of the chat. With a scripted generator.
"""
import json
import os
import re
import shutil
import subprocess

from support.program_case import PROGRAM, main
from support.terminal_case import TerminalCase


class Journal(TerminalCase):
    def session(self, name='s.json'):
        return os.path.join(self.home.name, name)

    def roles(self, path):
        """Roles and texts after the program has read and closed the chat."""
        with open(path, encoding='utf-8') as file:
            return [(m['role'][0], m['content']) for m in json.load(file)['messages']]

    def killed_during_an_answer(self, *words):
        """Answer `one` to a, then die while b is answered."""
        begun, hold = self.gate('begun'), self.gate('hold')
        self.fake('one', '\x1d', begun=begun, hold=hold)
        terminal = self.ready(*words)
        self.ask(terminal, 'a')
        os.unlink(begun)
        terminal.send('b\r')
        self.read_until(terminal, lambda: os.path.exists(begun))
        terminal.process.kill()
        terminal.wait()

    def test_a_question_survives_a_kill_during_its_answer(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        self.fake('two', 'three')
        terminal = self.ready('--session', path)
        terminal.expect(rb'/retry')
        self.assertIn(b'two', self.ask(terminal, '/retry'))
        self.leave(terminal)
        self.assertEqual(self.roles(path), [('u', 'a'), ('a', 'one'), ('u', 'b'), ('a', 'two')])
        self.assertEqual(os.listdir(os.path.dirname(path)).count('s.json.journal'), 0)

    def test_the_last_chat_survives_a_kill_too(self):
        self.killed_during_an_answer()
        terminal = self.ready('--continue')
        terminal.send('/history\r')
        terminal.expect(rb'1> a\S*\r\none\r\n\S*2> b\S*\r\n')

    def test_an_unanswered_question_does_not_break_the_next_turn(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        self.fake('three')
        self.assertEqual(self.says('--session', path, '-p', 'c'), b'three\n')
        self.assertEqual(self.roles(path),
                         [('u', 'a'), ('a', 'one'), ('u', 'b'), ('a', ''), ('u', 'c'), ('a', 'three')])

    def test_undo_retry_forget_and_system_reach_the_file(self):
        self.fake('1', '2', '3', '4', '5', '6')
        path = self.session()
        terminal = self.ready('--session', path)
        for line in ('a', 'b', 'c'):
            self.ask(terminal, line)
        terminal.send('/undo\r')
        terminal.expect(rb'2 turns left')
        self.ask(terminal, '/retry')
        self.ask(terminal, 'd')
        wanted = [('u', 'a'), ('a', '1'), ('u', 'b'), ('a', '4'), ('u', 'd'), ('a', '5')]
        self.assertEqual([(m['role'][0], m['content']) for m in self.saved(path)], wanted)
        copy = self.session('copy.json')  # as after a kill
        shutil.copy(path, copy)
        shutil.copy(path + '.journal', copy + '.journal')
        self.says('--session', copy, '-p', 'e')
        self.assertEqual(self.roles(copy)[:6], wanted)
        terminal.send('/forget 1\r')
        terminal.expect(rb'forgotten')
        terminal.send('/system be brief\r')
        terminal.expect(rb'system')
        self.leave(terminal)
        self.assertEqual(self.roles(path), [('s', 'be brief'), *wanted[2:]])

    def test_undo_of_a_stopped_retry_reaches_the_file(self):
        path = self.session()
        self.fake('the whole answer', b'a part\x1d', hold=self.gate('hold'), waiting=self.gate('waiting'))
        terminal = self.ready('--session', path)
        self.ask(terminal, 'a')
        terminal.send('/retry\r')
        self.read_until(terminal, lambda: os.path.exists(self.path('waiting')))
        self.assertIn(b'stopped', self.says_in(terminal, b'\x1b'))
        self.wait_for(lambda: [m['content'] for m in self.saved(path)] == ['a', 'a part'])
        terminal.send('/undo\r')
        terminal.expect(rb'1 turn left')
        self.wait_for(lambda: [m['content'] for m in self.saved(path)] == ['a', 'the whole answer'])
        self.leave(terminal)
        self.assertEqual(self.roles(path), [('u', 'a'), ('a', 'the whole answer')])

    def test_a_journal_without_its_chat_is_kept_aside(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        with open(path + '.journal', 'rb') as file:
            journal = file.read()
        os.remove(path)
        done = self.chat('--session', path, '-i', stdin=b'new\n')
        self.assertIn(b'does not exist, but had a journal', done.stderr)
        with open(path + '.journal.old', 'rb') as file:
            self.assertEqual(file.read(), journal)
        self.assertEqual(self.roles(path)[0], ('u', 'new'))

    def test_save_keeps_a_journal_without_its_chat_aside(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        os.remove(path)
        done = self.chat('-i', stdin=f'new\n/save {path}\n'.encode())
        self.assertIn(b'does not exist, but had a journal', done.stderr)
        self.assertTrue(os.path.exists(path + '.journal.old'))

    def test_a_torn_line_is_dropped_and_damage_is_reported(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        with open(path + '.journal', 'rb') as file:
            journal = file.read()
        for tail, n_turns, warning in ((b'{"keep": 2, "mess', 2, b''), (b'{"keep": 7}\n', 2, b'is damaged'),
                                       (b'[]\n', 2, b'is damaged'), (b'\xff\n', 2, b'is damaged'),
                                       (b'{"keep": 0, "messages": [{"role": "user", "content": "z"}, 7]}\n',
                                        2, b'is damaged')):
            copy = self.session('torn.json')
            shutil.copy(path, copy)
            with open(copy + '.journal', 'wb') as file:
                file.write(journal + tail)
            done = self.chat('--session', copy, '-i', stdin=b'/history\n')
            self.assertEqual(done.stderr.count(b'> '), n_turns, done.stderr)
            self.assertIn(warning, done.stderr)
            self.assertEqual(len(self.roles(copy)), 3)
            self.assertEqual(os.path.exists(copy + '.journal.old'), bool(warning))

    def test_a_kill_between_the_new_file_and_the_end_of_the_journal_loses_nothing(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        journal = path + '.journal'
        shutil.copy(journal, self.path('kept'))
        self.chat('--session', path, '-i', stdin=b'')  # reads the journal and replaces the file
        wanted = self.roles(path)
        with open(path, 'rb') as file:
            fnv1a = 0xcbf29ce484222325  # as in engine/base/hash.h
            for byte in file.read():
                fnv1a = (fnv1a ^ byte) * 0x100000001b3 % 2**64
        with open(self.path('kept'), 'rb') as file, open(journal, 'wb') as out:
            out.write(file.read() + b'{"compacted": "%016x"}\n' % fnv1a)
        done = self.chat('--session', path, '-i', stdin=b'/history\n')
        self.assertEqual((done.returncode, done.stderr.count(b'journal')), (0, 0), done.stderr)
        self.assertEqual(self.roles(path), wanted)
        self.assertFalse(os.path.exists(journal))

    def test_a_journal_of_another_state_is_kept_aside(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        with open(path, encoding='utf-8') as file:
            stored = json.load(file)
        stored['messages'][0]['content'] = 'edited'
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(stored, file)
        done = self.chat('--session', path, '-i', stdin=b'')
        self.assertIn(b'belongs to another state', done.stderr)
        self.assertTrue(os.path.exists(path + '.journal.old'))
        self.assertEqual(self.roles(path), [('u', 'edited')])

    def test_load_reports_a_journal_that_is_not_used(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        with open(path, 'rb') as file:
            stored = file.read()
        with open(path + '.journal', 'rb') as file:
            journal = file.read()
        for text, lines, warning in ((stored.replace(b'"a"', b'"edited"'), journal, b'belongs to another state'),
                                     (stored, journal + b'[]\n', b'is damaged')):
            copy = self.session('loaded.json')
            for name, data in ((copy, text), (copy + '.journal', lines)):
                with open(name, 'wb') as file:
                    file.write(data)
            done = self.chat('-i', stdin=f'/load {copy}\n'.encode())
            self.assertRegex(done.stderr, rb'loaded\.json\.journal ' + warning)
            with open(copy + '.journal.old', 'rb') as file:
                self.assertEqual(file.read(), lines)
            os.unlink(copy + '.journal.old')

    def test_a_journal_that_cannot_be_read_is_not_lost(self):
        path = self.session()
        self.killed_during_an_answer('--session', path)
        os.truncate(path + '.journal', (64 << 20) + 1)  # root can read any file, but no file is that large
        with open(path, 'rb') as file:
            stored = file.read()
        self.assertRegex(self.refuses(5, '--session', path, '-p', 'c'), "journal of .*json.journal' is larger than")
        done = self.chat('-i', stdin=f'/load {path}\n'.encode())
        self.assertRegex(done.stderr, rb"json\.journal' is larger than")
        with open(path, 'rb') as file:
            self.assertEqual(file.read(), stored)
        self.assertEqual(os.path.getsize(path + '.journal'), (64 << 20) + 1)

    def test_a_full_disk_during_an_append_keeps_the_earlier_turns(self):
        path = self.session()
        self.fake('one', 'long ' * 500, 'three')
        words = ['sh', '-c', 'ulimit -f 4; exec "$0" "$@"', PROGRAM, self.model, '--session', path]
        terminal = self.start(words)
        terminal.expect(rb'loaded in')
        self.ask(terminal, 'a')
        self.ask(terminal, 'b')
        self.assertEqual(terminal.seen.count(b'continues unsaved'), 1)
        self.assertRegex(terminal.seen, rb"journal':\s+File\s+too\s+large;")  # not the error of an earlier call
        terminal.process.kill()
        terminal.wait()
        self.chat('--session', path, '-i', stdin=b'')
        self.assertEqual(self.roles(path), [('u', 'a'), ('a', 'one'), ('u', 'b')])

    def test_a_turn_writes_the_same_amount_after_many_turns(self):
        """Counts what the program writes, because time depends on the machine."""
        self.fake('ok')
        path = self.session()
        terminal = self.ready('--session', path)
        written = []
        for turn in range(120):
            terminal.send(f'question {turn:03}\r')
            n_messages = 2 * (turn + 1)
            self.read_until(terminal, lambda n=n_messages: os.path.exists(path) and len(self.saved(path)) == n)
            with open(f'/proc/{terminal.process.pid}/io', encoding='utf-8') as file:
                written.append(int(re.search(r'(?m)^wchar: (\d+)$', file.read()).group(1)))
        early, late = written[20] - written[10], written[119] - written[109]
        self.assertLess(late, 2 * early)
        terminal.send(b'\x04')
        terminal.wait()
        self.assertEqual(len(self.roles(path)), 240)


class Locks(TerminalCase):
    def pair(self):
        """A chat that uses a session, and the path of the session."""
        path = os.path.join(self.home.name, 'work.json')
        self.fake('one')
        holder = self.ready('--session', path)
        self.ask(holder, 'first')
        return holder, path

    def test_a_second_chat_is_told_who_holds_the_session_and_offered_a_copy(self):
        holder, path = self.pair()
        for painter in ([], ['--tui']):
            other = self.open('--session', path, *painter)
            other.expect(rb'in use by process %d on\s' % holder.process.pid)
            other.expect(rb"Continue on a copy, '[^']*work-\d.json'\? \[Y/n\] ")
            other.send('y\r')
            other.expect(rb'loaded in')
            self.says_in(other, b'second\r')
            self.leave(other)
        self.ask(holder, 'third')
        self.leave(holder)
        texts = {name: [m['content'] for m in self.saved(os.path.join(self.home.name, name))]
                 for name in ('work.json', 'work-2.json', 'work-3.json')}
        self.assertEqual(texts['work.json'], ['first', 'one', 'third', 'one'])
        self.assertEqual(texts['work-2.json'], ['first', 'one', 'second', 'one'])
        self.assertEqual(texts['work-3.json'], ['first', 'one', 'second', 'one'])
        self.assertEqual([n for n in os.listdir(self.home.name) if 'lock' in n or 'journal' in n], [])

    def test_no_refuses_the_copy(self):
        _, path = self.pair()
        other = self.open('--session', path)
        other.expect(rb'\[Y/n\] ')
        other.send('n\r')
        self.left_clean(other, 5)

    def test_a_script_is_refused_with_the_holder(self):
        holder, path = self.pair()
        for words in (('-p', 'x'), ('--lines',), ('-i',)):
            said = self.refuses(5, '--session', path, *words, stdin=b'x\n')
            self.assertRegex(said, f"work.json' is in use by process {holder.process.pid} on ")
        self.assertEqual(self.says('--load', path, '-p', 'x'), b'one\n')  # reading needs no lock

    def test_load_and_save_respect_the_lock(self):
        holder, path = self.pair()
        self.fake('one')
        other = self.ready()
        self.ask(other, 'mine')
        other.send(f'/save {path}!\r')
        other.expect(rb'work.json is in use by\s+process %d' % holder.process.pid)
        other.send(f'/load {path}\r')
        other.expect(rb'continues\s+on\s+a\s+copy')
        other.send(f'/load {path}!\r')
        other.expect(rb'continuing\s+on\s+a\s+copy')
        other.expect(rb'1\s+turn\s+loaded')
        self.ask(other, 'mine too')
        self.leave(other)
        self.leave(holder)
        self.assertEqual([m['content'] for m in self.saved(path)], ['first', 'one'])
        self.assertEqual([m['content'] for m in self.saved(path.replace('.json', '-2.json'))],
                         ['first', 'one', 'mine too', 'one'])

    def test_a_killed_chat_holds_no_lock(self):
        holder, path = self.pair()
        holder.process.kill()
        holder.wait()
        self.assertEqual(self.says('--session', path, '-p', 'x'), b'one\n')

    def test_a_lock_held_by_any_process_is_seen(self):
        path = os.path.join(self.home.name, 'held.json')
        with subprocess.Popen(['flock', path + '.lock', 'sh', '-c', 'echo; read x'], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.assertIn('in use by another process', self.refuses(5, '--session', path, '-p', 'x'))
            with open(path + '.lock', 'wb') as file:
                file.write(b'x' * 500)  # a line without an end, longer than what is read
            self.assertRegex(self.refuses(5, '--session', path, '-p', 'x'), 'in use by x{10,160}[^x]')
            process.stdin.close()
            process.wait()
        self.says('--session', path, '-p', 'x')

    def test_two_chats_at_once_keep_all_turns_of_the_last_chats(self):
        self.fake('one')
        pair = [self.ready(), self.ready()]
        for n in range(6):
            self.ask(pair[n % 2], f'turn {n}')
        for terminal in reversed(pair):
            self.leave(terminal)
        self.assertEqual(self.messages(), ['turn 0', 'turn 2', 'turn 4'])
        terminal = self.ready('--continue')  # the one that was written last
        terminal.send('/history\r')
        terminal.expect(rb'turn 4')
        self.leave(terminal)

    def test_continue_of_a_chat_in_use_is_a_copy(self):
        self.fake('one')
        holder = self.ready()
        self.ask(holder, 'first')
        other = self.ready('--continue')
        self.assertRegex(other.seen, rb'in use by process %d on\s' % holder.process.pid)
        self.ask(other, 'second')
        self.ask(holder, 'third')
        self.leave(other)
        self.leave(holder)
        self.assertEqual(self.messages(), ['first', 'third'])


class ContinueNamed(TerminalCase):
    """--continue of a chat that was saved under a name."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.home.name, 's.json')
        self.fake('one')

    def begin(self, *words, commands=()):
        terminal = self.ready(*words)
        self.ask(terminal, 'a')
        for command in commands:
            terminal.send(command + '\r')
            terminal.expect(rb'saved in')
        self.leave(terminal)

    def last(self):
        with open(self.state('last.json'), encoding='utf-8') as file:
            return json.load(file)

    def questions(self):
        with open(self.path, encoding='utf-8') as file:
            return [m['content'] for m in json.load(file)['messages'] if m['role'] == 'user']

    def is_locked_by(self, pid):
        """Whether the lock file names this process. The file is empty for a moment."""
        try:
            with open(self.path + '.lock', encoding='utf-8') as file:
                return file.read().startswith(f'process {pid} ')
        except FileNotFoundError:
            return False

    def continued(self, *words):
        """Continue, ask b, leave. -> what the terminal showed"""
        terminal = self.ready('-C', *words, columns=200)
        self.ask(terminal, 'b')
        self.leave(terminal)
        self.assertEqual(self.messages(), ['a', 'b'])
        return terminal.seen

    def test_a_loaded_chat_is_the_last_one(self):
        for asks, first in ((True, ()), (False, ()), (True, ('--session', os.path.join(self.home.name, 'o.json')))):
            self.begin(commands=[f'/save {self.path}!'])
            terminal = self.ready(*first)
            if asks:
                self.ask(terminal, 'other')
            terminal.send(f'/load {self.path}\r')
            terminal.expect(rb'1 turn loaded')
            self.leave(terminal)
            self.assertNotIn(b'changed since', self.continued())
            self.assertEqual(self.questions(), ['a', 'b'])

    def test_later_turns_are_in_the_saved_chat_too(self):
        for words, commands in ((('--session', self.path), ()), ((), (f'/save {self.path}',))):
            self.begin(*words, commands=commands)
            self.continued()
            self.assertEqual(self.questions(), ['a', 'b'])
            self.assertEqual(self.says('-C', '-p', 'c'), b'one\n')
            self.assertEqual(self.questions(), ['a', 'b', 'c'])
            os.unlink(self.path)

    def test_a_loaded_chat_is_continued_there(self):
        self.begin('--session', self.path)
        terminal = self.ready()
        terminal.send(f'/load {self.path}\r')
        terminal.expect(rb'1 turn loaded')
        self.ask(terminal, 'b')
        self.leave(terminal)
        self.says('-C', '-p', 'c')
        self.assertEqual(self.questions(), ['a', 'b', 'c'])

    def test_a_chat_without_a_name_stays_without_one(self):
        self.begin()
        self.continued()
        self.assertNotIn('saved_as', self.last())

    def test_a_relative_path_is_found_from_another_directory(self):
        self.begin('--session', os.path.relpath(self.path))
        terminal = self.ready('-C', folder=self.home.name)
        self.ask(terminal, 'b')
        self.leave(terminal)
        self.assertEqual(self.questions(), ['a', 'b'])

    def test_both_files_have_the_turns_after_a_kill(self):
        terminal = self.ready('--session', self.path)
        self.ask(terminal, 'a')
        terminal.process.kill()
        terminal.wait()
        self.continued()
        self.assertEqual(self.questions(), ['a', 'b'])

    def test_a_saved_chat_that_has_changed_is_left_alone(self):
        self.begin('--session', self.path)
        self.says('--session', self.path, '-p', 'x')
        self.assertIn(b's.json\' has changed since; this chat is not saved there', self.continued())
        self.assertEqual(self.questions(), ['a', 'x'])
        self.assertNotIn('saved_as', self.last())

    def test_an_edit_by_hand_is_a_change(self):
        for edit in (lambda chat: chat.update(note='mine'), lambda chat: chat['messages'][0].update(content='A')):
            self.begin('--session', self.path)
            with open(self.path, encoding='utf-8') as file:
                chat = json.load(file)
            edit(chat)
            with open(self.path, 'w', encoding='utf-8') as file:
                json.dump(chat, file)
            self.assertIn(b'has changed since', self.continued())
            with open(self.path, encoding='utf-8') as file:
                self.assertEqual(json.load(file), chat)
            os.unlink(self.path)

    def test_a_saved_chat_in_use_is_left_alone(self):
        self.begin('--session', self.path)
        # A script, because a chat of a user would use the last conversation, too.
        with subprocess.Popen([PROGRAM, self.model, '--session', self.path, '-i'], env=self.env,
                              stdin=subprocess.PIPE) as holder:
            self.wait_for(lambda: self.is_locked_by(holder.pid))
            self.assertRegex(self.continued(), rb"s\.json' is in use by process %d on" % holder.pid)
            holder.stdin.close()
        self.assertEqual(self.questions(), ['a'])

    def test_a_saved_chat_that_is_gone_is_not_made_again(self):
        self.begin('--session', self.path)
        os.unlink(self.path)
        self.assertRegex(self.continued(), rb'was deleted or moved; this chat is not\s+saved there')
        self.assertFalse(os.path.exists(self.path))

    def test_private_chats_only_read(self):
        self.begin('--session', self.path)
        self.says('-C', '--private', '-p', 'b')
        self.assertEqual((self.questions(), self.messages()), (['a'], ['a']))

    def test_a_damaged_name_is_ignored(self):
        for name in (7, 's.json', '/', self.home.name, '/dev/null', '/\x1b[31m', self.path + '\0x', '/' + 5000 * 'x'):
            self.begin()
            last = {**self.last(), 'saved_as': name}
            with open(self.state('last.json'), 'w', encoding='utf-8') as file:
                json.dump(last, file)
            self.continued()
        self.assertFalse(os.path.exists('/dev/null.lock'))


if __name__ == '__main__':
    main()
