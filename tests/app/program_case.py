"""
What tests of whole programs share: a work folder with a generated model, and running a program with
its three outputs. The programs' paths come from the command line, before unittest's own words.
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MAKE_MODEL = map(os.path.abspath, sys.argv[1:3])
NAME = os.path.basename(PROGRAM)

# nohup, and shells that run in the background, leave these ignored, and children inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)


class ProgramCase(unittest.TestCase):
    """One work folder for the class; `model` is a tiny model with a vocabulary of bytes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.make('tiny.gguf')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def make(cls, name, *args):
        """A generated model; the words are make_model's options."""
        path = cls.path(name)
        subprocess.run([MAKE_MODEL, *args, path], check=True, timeout=300)
        return path

    @classmethod
    def write(cls, name, data):
        path = cls.path(name)
        with open(path, 'wb') as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    @staticmethod
    def run_program(*args, stdin=b'', stdout=subprocess.PIPE):
        return subprocess.run([PROGRAM, *args], input=stdin, stdout=stdout, stderr=subprocess.PIPE,
                              timeout=300, check=False)

    def succeeds(self, *args, stdin=b''):
        """Standard output of a run that must succeed without a word on standard error."""
        done = self.run_program(*args, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, b''), args)
        return done.stdout

    def fails(self, code, *args, stdin=b''):
        """The error line of a run that must end with `code` and say why in one line."""
        done = self.run_program(*args, stdin=stdin)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, (args, text))
        self.assertEqual(text.count('\n'), 1, (args, text))
        self.assertTrue(text.startswith(NAME + ': '), (args, text))
        return text

    def models_that_do_not_load(self):
        """Paths of everything that is no model."""
        with open(self.model, 'rb') as file:
            whole = file.read()
        yield self.path('missing.gguf')
        yield self.folder.name
        yield self.write('empty.gguf', b'')
        yield self.write('text.gguf', 'hello, I am no model\n' * 100)
        yield self.write('magic.gguf', b'GGUF')
        yield self.write('header.gguf', whole[:24])
        yield self.write('half.gguf', whole[:len(whole) // 2])
        yield self.write('short.gguf', whole[:-1])


def main():
    unittest.main(argv=[NAME, *sys.argv[3:]])
