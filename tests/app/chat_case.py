"""
What tests of bitnet-chat share beyond program_case: a home of its own and answers told in advance.

PROGRAM is the chat with a scripted generator in the engine's place (fake_engine.c).
"""
import os
import subprocess
import tempfile
import time

from program_case import PROGRAM, ProgramCase

KEPT = ('PATH', 'LC_ALL', 'LANG', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')
LEAKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ncurses_leaks.txt')


class ChatCase(ProgramCase):
    """self.fake(...) tells the generator what to do; self.chat(...) runs the program."""

    def setUp(self):
        # what a killed program leaves may still be written
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.home.cleanup)  # after what a test adds later: sockets of terminals are in there
        self.env = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env.update(HOME=self.home.name, TERM='xterm', LC_ALL='C.UTF-8',
                        LSAN_OPTIONS=f'suppressions={LEAKS}:print_suppressions=0')
        self.words = []

    def fake(self, *answers, **numbers):
        """The answers in order, each bytes or text, and numbers such as token_ms=5."""
        if answers:
            said = b'\x1e'.join(a if isinstance(a, bytes) else a.encode() for a in answers)
            numbers['answers'] = self.write('answers', said)
        self.env['BITNET_FAKE'] = ' '.join(f'{name}={value}' for name, value in numbers.items())

    def gate(self, name='gate'):
        """A path where nothing is: what the generator's load_until, hold and begun take."""
        path = self.path(name)
        if os.path.exists(path):
            os.unlink(path)
        return path

    def wait_for(self, holds, seconds=30):
        """Until holds() does."""
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def state(self, name):
        return os.path.join(self.home.name, '.local/state/bitnet-chat', name)

    def chat(self, *args, stdin=b'', stdout=subprocess.PIPE, model=None, timeout=60):
        stream = {'input': stdin} if isinstance(stdin, bytes) else {'stdin': stdin}
        return subprocess.run([PROGRAM, model or self.model, *args], stdout=stdout,
                              stderr=subprocess.PIPE, env=self.env, timeout=timeout, check=False,
                              **stream)

    def says(self, *args, stdin=b''):
        """Standard output of a run that succeeds in silence."""
        done = self.chat(*args, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, b''), args)
        return done.stdout

    def refuses(self, code, *args, stdin=b''):
        """The one line of a run that ends with `code`."""
        done = self.chat(*args, stdin=stdin)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, (args, text))
        self.assertEqual(text.count('\n'), 1, (args, text))
        self.assertTrue(text.startswith('bitnet-chat: '), text)
        return text
