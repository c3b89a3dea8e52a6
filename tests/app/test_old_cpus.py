#!/usr/bin/env python3
"""
test_old_cpus.py CHAT MAKE_MODEL INSPECT QEMU: whole programs on emulated processors without AVX2 and
without AVX-512. The programs use the best available instruction set, execute no unknown instruction,
and give the same answers as on this machine.
"""
import subprocess
import sys

from support.program_case import PROGRAM, ProgramCase, main

INSPECT, QEMU = sys.argv[3:5]
del sys.argv[3:5]
# Emulator command, and the instruction set that the program finds.
CPUS = [([QEMU, '-cpu', 'Nehalem'], 'plain C'), ([QEMU, '-cpu', 'Haswell'], 'AVX2')]


class OldCpus(ProgramCase):
    def output(self, *words, stdin=b''):
        done = subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def on_each(self, *words, stdin=b''):
        """The output of a program on this machine and on each emulated processor."""
        return (self.output(*words, stdin=stdin),
                [self.output(*cpu, *words, stdin=stdin) for cpu, _ in CPUS])

    def test_the_instruction_set_is_that_of_the_processor(self):
        _, there = self.on_each(INSPECT, 'info', self.model)
        for text, (_, isa) in zip(there, CPUS):
            self.assertRegex(text.decode(), rf'(?m)^ +cpu +\d+ threads?, {isa}$')

    def test_answers_are_the_same(self):
        wide = self.make('wide.gguf', '--shape', '2,256,4,2,768,512')
        for model, more in ((self.model, ('--seed', '5')), (wide, ('--temp', '0'))):
            here, there = self.on_each(PROGRAM, model, '--private', '-q', '-n', '20', '-t', '1',
                                       *more, stdin=b'hello\n')
            self.assertGreater(len(here), 1)
            self.assertEqual(there, [here] * len(CPUS), (model, more))

    def test_logits_are_the_same_bytes(self):
        out = self.path('logits')
        logits = []
        for cpu in ([], *(cpu for cpu, _ in CPUS)):
            self.output(*cpu, INSPECT, 'logits', self.model, '-t', '2',
                        '--tokens', ','.join(str(id) for id in range(40)), '--out', out)
            with open(out, 'rb') as file:
                logits.append(file.read())
        self.assertGreater(len(logits[0]), 40)
        self.assertEqual(logits[1:], logits[:1] * len(CPUS))


if __name__ == '__main__':
    main()
