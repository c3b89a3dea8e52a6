#!/usr/bin/env python3
"""
test_soak.py CHAT MAKE_MODEL [TURNS [SEED]]: a long chat with the built-in model in tmux, with random actions:
questions, several at once, undo, redo, retry, edit, files, stopped answers, resizes, changes of the painter.

After each action these must agree: what the program exports, the saved chat as another process reads it, the screen,
and the KV cache (a new process that evaluates the whole conversation gives the same answer). After turn 100 the memory
may grow by 5 MB. Without TURNS a short chat runs. Skipped (77) without tmux.
"""
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

TURNS, SEED = (int(x) for x in (sys.argv[3:] + ['25', '1'][len(sys.argv[3:]):]))
del sys.argv[3:]

from support.chat_case import ChatCase  # noqa: E402  (it reads the command line)
from support.idle import children_of  # noqa: E402
from support.program_case import PROGRAM, main  # noqa: E402
from support.terminal_screen import Screen  # noqa: E402

LIMITS = ('24', '600')  # tokens of an answer; the second one while an answer is to be stopped
SETTINGS = ('-n', LIMITS[0], '--seed', '1', '-t', '1', '--ctx', '1024')
BUSY = re.compile(r'(?m)^(reading|generating|stopping|loading)\b')  # the status row of an answer
MAX_GROWTH = 5 << 20  # bytes after turn 100
ANSWERING = ('ask', 'ask_many', 'ask_lines', 'retry', 'edit', 'attach')
QUESTIONS = ('what can you do', 'my name is Anna', 'what is my name', 'count to five', 'tell me about /undo',
             'how do I save a chat', 'say 漢字', 'e\u0301 and 👨‍👩‍👧 are characters', 'what is the --seed option')


def letters(text):
    """Letters and digits only: wrapping, markup and control characters make no difference."""
    return re.sub(r'[\W_]+', '', text)


def whole_characters(text):
    """Invalid bytes that the model has written are one replacement character, however many they were."""
    return re.sub('\ufffd+', '\ufffd', text)


class Soak(ChatCase):
    def setUp(self):
        super().setUp()
        self.work = os.path.join(self.home.name, 'work')
        os.makedirs(self.work)
        self.session = os.path.join(self.work, 'talk.json')
        self.random = random.Random(SEED)
        self.n_sent = self.n_exports = self.n_turns = 0
        self.turns = []     # pairs of question and answer
        self.earlier = []   # such lists, for undo
        self.actions = []
        self.screen = Screen(self.home.name, self.env, [PROGRAM, '--session', self.session, *SETTINGS], 80, 24)
        self.addCleanup(self.screen.close)
        self.screen.expect('>>>$')

    # ---- the program ----

    def type(self, text):
        self.screen.send('-l', text)

    def enter(self, text):
        self.type(text)
        self.screen.send('Enter')

    def settle(self):
        """Wait until the program has read its keys, the prompt is the last line and the screen does not change."""
        self.screen.settle()
        deadline, before = time.monotonic() + 60, None
        while True:
            text = self.screen.text().rstrip()
            rows = text.split('\n')
            if '>>>' in rows[-1][:4] or any(row.startswith('>>>') for row in rows[-4:]):
                if text == before and not BUSY.search(text):
                    return text
            if time.monotonic() > deadline:
                self.fail(f'the chat is not ready:\n{text}')
            before = text
            time.sleep(0.05)

    def export(self):
        """The conversation as the program has it."""
        self.n_exports += 1
        path = os.path.join(self.work, f'{self.n_exports}.jsonl')
        self.settle()
        self.enter(f'/export {path}')
        deadline = time.monotonic() + 120
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline, self.screen.text())
            time.sleep(0.02)
        self.settle()
        with open(path, encoding='utf-8') as file:
            messages = [json.loads(line) for line in file]
        os.unlink(path)
        return self.pairs(messages)

    @staticmethod
    def pairs(messages):
        turns = []
        for message in messages:
            if message['role'] == 'user':
                turns.append((message['content'], None))
            else:
                turns[-1] = (turns[-1][0], message['content'])
        return turns

    def run_program(self, *words, stdin=b''):
        done = subprocess.run([PROGRAM, *words], input=stdin, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False, cwd=self.work)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return whole_characters(done.stdout.decode('utf-8', 'replace'))

    def saved(self):
        """The saved chat, read by another process from a copy of its files."""
        folder = os.path.join(self.work, 'copy')
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for path in glob.glob(os.path.join(self.work, 'talk.json*')):
            shutil.copy(path, folder)
        plain = os.path.join(folder, 'plain.json')
        self.run_program('-i', '-q', '--session', os.path.join(folder, 'talk.json'), *SETTINGS,
                         stdin=f'/save {plain}\n'.encode())
        with open(plain, encoding='utf-8') as file:
            return json.load(file)

    def memory(self):
        pid = children_of(self.screen.shell)[0]
        with open(f'/proc/{pid}/status', encoding='utf-8') as file:
            return int(re.search(r'RssAnon:\s+(\d+) kB', file.read())[1]) << 10

    # ---- actions ----

    def question(self):
        self.n_sent += 1
        return f'q{self.n_sent}x {self.random.choice(QUESTIONS)}'

    def ask(self):
        text = self.question()
        self.enter(text)
        return [text]

    def ask_many(self):
        texts = [self.question() for _ in range(3)]
        for text in texts:
            self.enter(text)
        return texts

    def ask_lines(self):
        first, second = self.question(), self.random.choice(QUESTIONS)
        self.type(first)
        self.settle()  # a line feed that arrives together with other keys would send the line
        self.screen.send('C-j')
        self.enter(second)
        return [f'{first}\n{second}']

    def stop(self):
        text = self.question()
        self.enter(f'/set max-tokens {LIMITS[1]}')
        self.settle()
        self.enter(text)
        time.sleep(self.random.random() * 0.2)
        self.screen.send('Escape')
        self.settle()
        # Without an answer to stop, Escape begins a key of Readline, which the space completes. If the answer had not
        # begun, the question is in the editor again.
        self.screen.send('Space', 'C-u')
        self.enter(f'/set max-tokens {LIMITS[0]}')

    def undo(self):
        self.enter('/undo')
        self.screen.send('C-u')

    def redo(self):
        self.enter('/redo')

    def retry(self):
        self.enter('/retry')

    def edit(self):
        number = self.random.randint(max(1, len(self.turns) - 3), max(1, len(self.turns)))
        self.enter(f'/edit {number}')
        self.settle()
        self.enter(f' edited{self.n_sent}')

    def attach(self):
        path = os.path.join(self.work, 'notes.txt')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'note {self.n_sent}\n')
        self.enter(f'/file {path}')
        self.settle()
        self.enter(self.question())

    def resize(self):
        for _ in range(self.random.randint(1, 3)):
            self.screen.resize(self.random.randint(24, 130), self.random.randint(8, 45))
        self.settle()

    def change_painter(self):
        self.screen.send('F2')

    ACTIONS = (ask, ask, ask, ask_many, ask_lines, stop, undo, redo, retry, edit, attach, resize, change_painter)

    # ---- checks ----

    def expected(self, name, before, sent):
        """Whether self.turns can follow from `before` by the action."""
        questions, old = [q for q, _ in self.turns], [q for q, _ in before]
        if sent is not None:
            return questions == old + sent
        if name in ('resize', 'change_painter'):
            return self.turns == before
        if name == 'retry':
            return questions == old
        if name in ('undo', 'redo'):
            return self.turns in (before, before[:-1]) or self.turns in self.earlier or questions[:-1] == old
        if name == 'stop':
            return questions in (old, old + questions[-1:])
        if name == 'attach':
            return questions[:-1] == old and questions[-1].count('note ') == 1
        return name == 'edit' and questions[-1].endswith(f'edited{self.n_sent}')

    def check_answers(self):
        missing = [q for q, answer in self.turns if answer is None]
        self.assertEqual(missing, [], 'questions without an answer')

    def check_screen(self, name):
        """The last question and answer are on the screen or above it. A full screen shows the end, if it is large."""
        if not self.turns:
            return
        question, answer = self.turns[-1]
        place = self.screen.tmux('display-message', '-p', '#{alternate_on} #{pane_height} #{pane_width}').split()
        is_full, is_large = place[0] == '1', int(place[1]) >= 18 and int(place[2]) >= 40
        text = letters(self.screen.text() if is_full else self.screen.text('-S', '-2000'))
        if not is_full:
            self.assertIn(letters(question.split('\n')[-1]), text)
            self.assertIn(letters(answer), text)
        elif is_large and name in ANSWERING:
            self.assertIn(letters(answer)[-12:], text)

    def check_file(self):
        session = self.saved()
        self.assertEqual(self.pairs(session['messages']), self.turns)
        return session

    def check_cache(self, session):
        """A new process with an empty cache gives the last answer, too."""
        if not self.turns or session['messages'][-1].get('finish') == 'interrupted':
            return
        question, answer = self.turns[-1]
        session['messages'] = session['messages'][:-2]
        session['skipped'] = min(session['skipped'], max(0, len(session['messages']) // 2 - 1))
        path = os.path.join(self.work, 'before.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(session, file)
        fresh = [self.run_program('--private', '-q', '--overflow', 'drop', '--load', path, *SETTINGS, '-n', limit,
                                  stdin=question.encode()).rstrip('\n') for limit in LIMITS]
        self.assertIn(whole_characters(answer).rstrip('\n'), fresh)

    def step(self):
        action = self.random.choice(self.ACTIONS)
        if not self.turns and action.__name__ in ('undo', 'retry', 'edit'):
            action = Soak.ask
        name, before = action.__name__, self.turns
        self.actions.append(name)
        sent = action(self)
        deadline = time.monotonic() + 60
        while True:
            self.turns = self.export()
            if self.expected(name, before, sent) and all(answer is not None for _, answer in self.turns):
                break
            if time.monotonic() > deadline:
                self.fail(f'{name} {sent}: {before[-4:]} -> {self.turns[-4:]}')
            time.sleep(1)  # an answer may have begun after the screen was read
        self.earlier = (self.earlier + [before])[-200:]
        self.n_turns += max(1, len(sent or []))
        self.check_answers()
        self.check_screen(name)
        session = self.check_file()
        if name in ANSWERING:  # an older answer may be from a time when more turns were in the context
            self.check_cache(session)

    def test_everything_agrees_after_each_action(self):
        start = None
        try:
            while self.n_turns < TURNS:
                self.step()
                if self.n_turns >= 100 and start is None:
                    start = self.memory()
                if start is not None:
                    self.assertLess(self.memory() - start, MAX_GROWTH)
        except AssertionError as problem:
            raise AssertionError(f'{problem}\nseed {SEED}, turn {self.n_turns}, actions {self.actions[-12:]}\n'
                                 f'{self.screen.text("-S", "-60")}') from None
        growth = 0 if start is None else self.memory() - start
        print(f'{self.n_turns} turns, {len(self.actions)} actions, the memory has grown by {growth} bytes')


if __name__ == '__main__':
    if not shutil.which('tmux'):
        sys.exit(77)
    main()
