"""
Base class for tests of bitnet-chat: each test has its own home directory, and PROGRAM is usually the chat
with a scripted generator in place of the engine (fake_engine.c), so that the answers are known.
"""
import json
import os
import subprocess
import tempfile
import time

from support.program_case import PROGRAM, ProgramCase, run

PASSED_ON = ('PATH', 'LC_ALL', 'LANG', 'ASAN_OPTIONS', 'UBSAN_OPTIONS', 'OMP_WAIT_POLICY')
LEAKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ncurses_leaks.txt')


class ChatCase(ProgramCase):
    """self.fake(...) scripts the generator; self.chat(...) runs the program."""

    def setUp(self):
        # A killed program may still write files while the folder is removed.
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Cleanups run in reverse order: the terminals, whose sockets are in this folder, are closed first.
        self.addCleanup(self.home.cleanup)
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env.update(HOME=self.home.name, TERM='xterm', LC_ALL='C.UTF-8',
                        LSAN_OPTIONS=f'suppressions={LEAKS}:print_suppressions=0')

    def fake(self, *answers, **numbers):
        """
        Script the generator: the answers in order, bytes or text, and options such as token_ms=5. An answer that waits
        for the file of `hold` creates the file `waiting`.
        """
        if 'hold' in numbers:
            numbers.setdefault('waiting', self.gate('waiting'))
        if answers:
            said = b'\x1e'.join(a if isinstance(a, bytes) else a.encode() for a in answers)
            numbers['answers'] = self.write('answers', said)
        self.env['BITNET_FAKE'] = ' '.join(f'{name}={value}' for name, value in numbers.items())

    def gate(self, name='gate'):
        """A path without a file, for those options of the generator that name a file."""
        path = self.path(name)
        if os.path.exists(path):
            os.unlink(path)
        return path

    def wait_for(self, holds, seconds=60):
        """Wait until holds() is true."""
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def in_home(self, name):
        return os.path.join(self.home.name, name)

    def write_in_home(self, name, text):
        path = self.in_home(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def write_inputrc(self, text):
        self.write_in_home('.inputrc', text)

    def state(self, name):
        return os.path.join(self.home.name, '.local/state/bitnet-chat', name)

    def chats_folder(self):
        """The folder of chats that were saved by name."""
        return self.in_home('.local/share/bitnet-chat/sessions')

    @staticmethod
    def saved(path):
        """The messages of a saved chat, with those of its journal."""
        with open(path, encoding='utf-8') as file:
            messages = json.load(file)['messages']
        try:
            with open(path + '.journal', encoding='utf-8') as file:
                records = [json.loads(line) for line in file if line.endswith('\n')][1:]
        except FileNotFoundError:
            records = []  # there is none, or the program has just deleted it
        if records:
            system = [m for m in messages if m['role'] == 'system']
            turns = [m for m in messages if m['role'] != 'system']
            for record in records:
                first = [i for i, m in enumerate(turns) if m['role'] == 'user'][record['keep']:][:1]
                turns = (turns[:first[0]] if first else turns) + record['messages']
            messages = system + turns
        return messages

    def chat(self, *args, stdin=b'', stdout=subprocess.PIPE, model=None, timeout=300):
        words = [PROGRAM, model or self.model, *args]
        more = {'stdout': stdout, 'stderr': subprocess.PIPE, 'env': self.env, 'timeout': timeout}
        if isinstance(stdin, bytes):
            return run(words, stdin, **more)
        return subprocess.run(words, stdin=stdin, check=False, **more)

    def says(self, *args, stdin=b''):
        """Run the chat. It must exit with 0 and print nothing on standard error. Returns its output."""
        done = self.chat(*args, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, b''), args)
        return done.stdout

    def refuses(self, code, *args, stdin=b''):
        """Run the chat. It must exit with `code` and print one error line. Returns that line."""
        done = self.chat(*args, stdin=stdin)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, (args, text))
        self.assertEqual(text.count('\n'), 1, (args, text))
        self.assertTrue(text.startswith('bitnet-chat: '), text)
        return text
