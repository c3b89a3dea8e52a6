#!/usr/bin/env python3
"""The conversations the demo model learns from, made up by a grammar.

usage: corpus.py [--split train|held] [--hard] [--n N] [--seed S]    prints conversations, for people to read
       corpus.py --questions N [--seed S] > held.jsonl               held-out conversations with N scored questions

A conversation is a list of turns (user text, answer, kind). The user tells things about themselves and
asks for them turns later, asks about bitnet-chat, adds numbers, spells words, asks facts, or asks what
the model cannot know. Everything that has to generalise is split into a training and a held-out part:
names and things (words.py), words to spell, numbers (by a hash of the operands), and phrasings
(phrases.txt; some alone, some in combination with what is asked for). `Maker("held")` uses held-out
things and phrasings only; it is what score.py asks. Invented words stand among the real ones in
training, so that the model learns to copy what it reads and not a list.
"""
import argparse
import json
import os
import random
import re
import zlib

import words as W

HERE = os.path.dirname(os.path.abspath(__file__))
DECLINE = "I don't know. I am the small built-in demo model."
HEAR = "I see. Ask me what I can do, or tell me something about you."
NOTHING_TOLD = "You have not told me anything yet."
CHANGE = ["Actually, ", "No, wait: ", "I was wrong: ", "Sorry, ", "Correction: ", "I changed my mind: "]
LEADS = ["So, ", "OK, ", "And ", "Now, ", "Well, ", "Hey, ", "Please, ", "One question: ", "Hello, ", "Hi, "]
TAILS = [", please.", " please", ", thanks.", " now?", " then?", "??", "!"]
ARTICLES = ["a", "the", "my", "some", "an old", "a good", "the best", "your"]
OPERATIONS = ["times", "divided by", "over", "x", "/"]
LOWERED = frozenset("What What's Which Who Where When Why How Tell Can Do Explain Show Remember Name List Say Is Are "
                    "Write Give Help Please Describe".split())
LISTS = [("the days of the week", W.DAYS), ("the planets", W.PLANETS), ("the months", W.MONTHS),
         ("the seasons", W.SEASONS)]
NAMED = frozenset(["name", "home", "pet"])  # kinds whose things have a capital
LETTERS = "abcdefghijklmnopqrstuvwxyz"


# ---- what is read from the files ----

def lines_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def read_topics():
    lines = lines_of("topics.txt")
    return [([name.strip() for name in names.split("|")], answer) for names, answer in zip(lines[::2], lines[1::2])]


def read_phrases():
    """-> {section: phrasings}, {section: answer}"""
    phrases, answers = {}, {}
    for line in lines_of("phrases.txt"):
        if line.startswith("["):
            section = line.strip("[]")
            phrases[section] = []
        elif line.startswith("= "):
            answers[section] = line[2:]
        else:
            phrases[section] += [phrase.strip() for phrase in line.removesuffix("|").split(" | ")]
    return phrases, answers


TOPICS = read_topics()
TOPIC_NAMES = frozenset(name for names, _ in TOPICS for name in names)
PHRASES, ANSWERS = read_phrases()
KINDS = [section.split()[1] for section in PHRASES if section.startswith("asked ")]
GREETINGS = [(q, answer) for section, answer in ANSWERS.items() for q in PHRASES[section]]


def of_kind(section):
    return {kind: PHRASES.get(f"{section} {kind}", []) for kind in KINDS}


TELL, TELL_MORE, HEARD, ASK, ASK_MORE, ASKED = (
    of_kind(s) for s in ("tell", "tell more", "heard", "ask", "ask more", "asked"))
RECALL, NOT_TOLD = ({kind: one for kind, (one,) in of_kind(s).items()} for s in ("recall", "not told"))


# ---- what is held out ----

def pick_phrases(phrases, held, key):
    """Of the last quarter of a list every other phrasing is held out, another half for another key: a held-out
    question is a combination that was never seen, of words that were."""
    cut = len(phrases) - max(1, len(phrases) // 4)
    late = [p for i, p in enumerate(phrases[cut:]) if (i + zlib.crc32(key.encode()) % 7) % 2]
    return late if held and late else [p for p in phrases if p not in late]


def pair_held(frame, kind):
    """Whether this way of asking for this kind is held out: the frame is known, the kind is known, the two together
    were never seen."""
    return zlib.crc32(f"{kind}: {frame}".encode()) % 5 == 0


def fill_frames(frames, kind):
    clause, thing, noun = ASKED[kind]
    return [frame.format(c=clause, t=thing, n=noun) for frame in frames]


def tell_frames(kind, held):
    return [frame.replace("{t}", "my " + ASKED[kind][1]).replace("{x}", "the {x}" if kind == "animal" else "{x}")
            for frame in PHRASES["tell frames"] if pair_held("told " + frame, kind) == held]


def late_frames(kind, held):
    return fill_frames([f for f in PHRASES["ask late"] if pair_held(f, kind) == held], kind)


def bare_words(text):
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def held_questions():
    """The words of every question about the user that is held out."""
    return {bare_words(q) for kind in KINDS for q in pick_phrases(ASK[kind], True, kind) + late_frames(kind, True)}


def operands_held(a, b):
    return (a * 7919 + b * 104729) % 8 == 0


def words_of(*things):
    """Every word of letters in any nesting of texts."""
    return {w.lower() for w in re.findall(r"[A-Za-z]+", json.dumps(things)) if len(w) > 1}


# What the model reads anyway: its tokens may be whole words.
LEXICON = words_of(TOPICS, list(PHRASES.values()), list(ANSWERS.values()), W.COLOURS, W.DRINKS, W.SEASONS, W.OPPOSITES,
                   W.PLURALS, W.THING_COLOURS, W.FOODS, W.ANIMALS, W.HOBBIES, W.JOBS, W.PLANETS, W.ORDINALS)


def spell_split():
    """-> (training, held-out) words to spell. A word that is used otherwise is one token, whose letters can only be
    known from having seen it spelled, so it is not held out."""
    train, kept = W.split(W.SPELL)
    return train + [w for w in kept if w in LEXICON], [w for w in kept if w not in LEXICON]


def held_words():
    lists = (W.NAMES, W.TOWNS, W.FOODS, W.ANIMALS, W.HOBBIES, W.JOBS, W.PET_NAMES)
    return {w.lower() for words in lists for w in W.split(words)[1]} | set(spell_split()[1])


class Inventor:
    """Words that look like those of a list: letters drawn by what follows two letters in it."""

    def __init__(self, words, forbidden):
        self.forbidden, self.after = set(forbidden), {}
        for word in words:
            text = "  " + word + "\n"
            for i in range(2, len(text)):
                self.after.setdefault(text[i - 2:i], []).append(text[i])

    def word(self, rng, low=3, high=9):
        while True:
            text = "  "
            while not text.endswith("\n") and len(text) < high + 4:
                text += rng.choice(self.after[text[-2:]])
            text = text.strip()
            if low <= len(text) <= high and text not in self.forbidden:
                return text


# ---- answers that show their steps ----

def sentence_case(text):
    return text[:1].upper() + text[1:]


def added(a, b):
    """Two digits are added one by one, aloud: the model sees each step before it needs it."""
    if a < 10 and b < 10:
        return f"{a} + {b} = {a + b}."
    ones, carried = a % 10 + b % 10, (a % 10 + b % 10) // 10
    tens = " + ".join(["1"] * carried + [str(x // 10) for x in (a, b) if x > 9])
    steps = f"{a % 10} + {b % 10} = {ones}, "
    if "+" in tens:
        steps += f"{tens} = {carried + a // 10 + b // 10}, "
    return f"{steps}so {a} + {b} = {a + b}."


def subtracted(a, b):
    """The same for a - b, where a is not the smaller one."""
    if a < 10:
        return f"{a} - {b} = {a - b}."
    borrowed = int(a % 10 < b % 10)
    steps = f"{10 * borrowed + a % 10} - {b % 10} = {(a - b) % 10}, "
    if b > 9 or borrowed:
        steps += f"{a // 10 - borrowed} - {b // 10} = {(a - b) // 10}, "
    return f"{steps}so {a} - {b} = {a - b}."


def numbered(items):
    return ", ".join(f"{item} {i + 1}" for i, item in enumerate(items))


class Maker:
    """Makes conversations of one split from one random generator. What most of training is made of (hard) has more of
    what must be copied, among it words of any letters, and more ways to tell, to ask and to be out of bounds. Pieces
    are the beginnings of words that are tokens."""

    def __init__(self, split="train", rng=None, hard=False, pieces=None):
        self.held, self.hard = split == "held", hard
        self.rng = rng or random.Random(1)
        part = 1 if self.held else 0
        self.spell = spell_split()[part]
        self.values = {"colour": W.COLOURS, "drink": W.DRINKS, "season": W.SEASONS}
        for kind, words in (("name", W.NAMES), ("home", W.TOWNS), ("food", W.FOODS), ("animal", W.ANIMALS),
                            ("hobby", W.HOBBIES), ("job", W.JOBS), ("pet", W.PET_NAMES)):
            self.values[kind] = W.split(words)[part]
        kept = held_words()
        self.kept_questions = held_questions()
        self.lexicon = sorted(LEXICON - kept)
        self.anything = [w for w in self.spell + sum(self.values.values(), []) if w.lower() not in kept]
        known = pieces or self.lexicon + [w for w in self.anything if w[0].isupper()]
        known = known + 2 * [p for p in known if p not in LEXICON]  # nothing else has these
        self.pieces = [[p for p in known if p.islower()], [p for p in known if p[0].isupper()]]  # of words, of names
        self.inventors = {}
        for kind, words in (("name", W.NAMES), ("home", W.TOWNS), ("pet", W.PET_NAMES), ("food", W.FOODS + W.SPELL),
                            ("animal", W.ANIMALS + W.SPELL), ("job", W.JOBS + W.SPELL), ("hobby", W.HOBBIES),
                            ("spell", W.SPELL)):
            train, held = W.split(words)
            self.inventors[kind] = Inventor([w for w in train if "-" not in w], held + sorted(kept))

    # -- small things --

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, section, **parts):
        return self.rng.choice(PHRASES[section]).format(**parts)

    def part(self, section):
        """A phrasing of a list of which every fourth is held out."""
        return self.rng.choice([p for i, p in enumerate(PHRASES[section]) if (i % 4 == 3) == self.held])

    def phrase(self, phrases, key):
        return self.rng.choice(pick_phrases(phrases, self.held, key))

    def any_letters(self):
        while True:
            word = "".join(self.rng.choice(LETTERS) for _ in range(self.rng.randint(3, 7)))
            if word not in self.inventors["spell"].forbidden:
                return word

    def blend(self, is_name=False):
        """A piece of the vocabulary and the end of a word, so that each of its tokens has been read and written."""
        pieces = self.pieces[is_name]
        while True:
            word = self.rng.choice(self.anything).lower()
            word = self.rng.choice(pieces) + word[len(word) - self.rng.randint(0, 4):]
            if word.lower() not in self.inventors["spell"].forbidden and 2 < len(word) < 12:
                return word

    def invented(self, kind):
        """A word that a harder conversation has for a thing of this kind."""
        r = self.rng.random()
        if r < .1:
            return self.any_letters()
        if r < .2:
            return self.rng.choice(self.lexicon)
        if r < .9:
            return self.blend(kind in NAMED)
        return self.inventors.get(kind, self.inventors["spell"]).word(self.rng)

    def number(self):
        while True:
            n = self.rng.randint(1, 99) if self.chance(.6) else self.rng.randint(100, 999)
            if (n % 8 == 0) == self.held:
                return str(n)

    def value(self, kind):
        if kind == "number":
            return self.number()
        case = str.capitalize if kind in NAMED else str.lower
        if self.hard and self.chance(.65):
            return case(self.invented(kind))
        r = 1 if self.held else self.rng.random()
        if kind in self.inventors and r < .3:
            return self.inventors[kind].word(self.rng)
        if r < .5:  # a word of another kind, so that things are copied, not known
            return case(self.rng.choice(self.anything))
        return self.rng.choice(self.values[kind])

    def some_word(self):
        if self.hard and self.chance(.8):
            r = self.rng.random()
            return (self.any_letters() if r < .12 else self.rng.choice(self.lexicon) if r < .3
                    else self.blend(self.chance(.25)))
        if not self.held and self.chance(.5):
            return self.inventors["spell"].word(self.rng)
        return self.rng.choice(self.spell)

    def loosely(self, text, lower=True):
        """As people type: with a word before or after, now and then without capitals or the final mark."""
        r = self.rng.random()
        if lower and r > .94:
            return text.lower()
        first = text.split()[0]
        if r < .1 and first in LOWERED:
            text = self.rng.choice(LEADS) + text[:1].lower() + text[1:]
        elif r < .14 and first in LOWERED:
            text = text.rstrip(".?!") + self.rng.choice(TAILS)
        r = self.rng.random()
        if r < .12 and not text.endswith('".'):
            text = text.rstrip(".?!")
        if r > .88 and not text.startswith(("I ", "I'")):
            text = text[:1].lower() + text[1:]
        return text

    def asked(self, text):
        """A task as it is written in a book; the harder conversations have it as people type it."""
        return self.loosely(text, False) if self.hard and self.chance(.5) else text

    # -- one-off turns: (user, answer, kind) --

    def help(self):
        names, answer = self.rng.choice(TOPICS)
        name = self.rng.choice([n for n in names if not (self.held and n.startswith("?"))])
        question = name[1:] if name.startswith("?") else \
            sentence_case(self.phrase(PHRASES["help"], name).format(x=name))
        return self.loosely(question), answer, "help"

    def greet(self):
        if self.chance(.25):
            said = self.pick("say", x=self.some_word(), y=self.some_word())
            return self.loosely(said + self.rng.choice(["", ".", "!"])), HEAR, "chat"
        q, answer = self.rng.choice(GREETINGS)
        is_question = q.split()[0] in ("How", "Who", "What", "What's", "Are")
        return self.loosely(q + ("?" if is_question else self.rng.choice(["", ".", "!"]))), answer, "chat"

    def arith(self):
        while True:
            top = 99 if self.chance(.7) else 20
            a, b = self.rng.randint(0, top), self.rng.randint(0, top)
            if operands_held(a, b) == self.held:
                break
        if self.chance(.5):
            return self.asked(self.pick("add", a=a, b=b)), added(a, b), "arith"
        if a < b:
            a, b = b, a
        if operands_held(a, b) != self.held:
            return self.arith()
        return self.asked(self.pick("subtract", a=a, b=b)), subtracted(a, b), "arith"

    def word(self):
        """What is spelled is letters in the vocabulary too: in quotes, between hyphens, when an answer begins."""
        x = self.some_word()
        r = self.rng.random()
        if self.hard and self.chance(.25):
            r = self.rng.uniform(.75, 1)
        letters, around = "-".join(x), "-".join(x[::-1])
        if r >= .75:
            return self.several_words("repeat" if r < .9 else "count words")
        if self.hard and r < .1:
            return self.several_words("spell several")
        section, answer = (
            ("spell", f"{letters}.") if r < .25 else
            ("reverse", f'{letters}, so backwards {around}: "{x[::-1]}".') if r < .45 else
            ("count letters", f"{numbered(x)}: {len(x)} letters.") if r < .6 else
            ("first letter", f"{x[0]}.") if r < .68 else
            ("last letter", f"{letters}, so {x[-1]}."))
        return self.asked(self.bare(self.pick(section, x=x))), answer, "word"

    def several_words(self, section):
        n = self.rng.randint(1, 5)
        words = [self.some_word() for _ in range(n)]
        question = self.asked(self.pick(section, x=" ".join(words)))
        if section == "repeat":
            return question, " ".join(words) + ".", "word"
        if section == "count words":
            return question, f"{numbered(words)}: {n} word{'s' if n > 1 else ''}.", "word"
        return self.bare(question), ", ".join("-".join(word) for word in words) + ".", "word"

    def bare(self, question):
        return question.replace('"', "") if self.chance(.4 if self.hard else .15) else question

    def fact(self):
        question, answer = self.some_fact()
        return self.loosely(question), answer, "fact"

    def some_fact(self):
        rng, r = self.rng, self.rng.random()
        if r < .4:
            country, city = rng.choice(list(W.CAPITALS.items()))
            return self.pick("capital", c=country), f"The capital of {country} is {city}."
        if r < .5:
            i = rng.randrange(7)
            day, after, before = W.DAYS[i], W.DAYS[(i + 1) % 7], W.DAYS[i - 1]
            if self.chance(.5):
                return self.pick("day after", x=day), f"{after} comes after {day}."
            return self.pick("day before", x=day), f"{before} comes before {day}."
        if r < .62:
            return self.month_fact()
        if r < .7:
            i = rng.randrange(8)
            return self.pick("planet", x=W.ORDINALS[i]), f"The {W.ORDINALS[i]} planet is {W.PLANETS[i]}."
        if r < .82:
            a, b = rng.choice(list(W.OPPOSITES.items()))
            if self.chance(.3) and list(W.OPPOSITES.values()).count(b) == 1 and b not in W.OPPOSITES:
                a, b = b, a
            return self.pick("opposite", x=a), f"The opposite of {a} is {b}."
        if r < .93:
            one, many = rng.choice(list(W.PLURALS.items()))
            return self.pick("plural", x=one), f"The plural of {one} is {many}."
        if r < .97:
            thing, colour = rng.choice(list(W.THING_COLOURS.items()))
            return self.pick("colour of", x=thing), f"{sentence_case(thing)} is {colour}."
        name, items = rng.choice(LISTS)
        return self.pick("list", x=name), ", ".join(items) + "."

    def month_fact(self):
        i = self.rng.randrange(12)
        month, r = W.MONTHS[i], self.rng.random()
        if r < .35:
            return self.pick("month after", x=month), f"{W.MONTHS[(i + 1) % 12]} comes after {month}."
        if r < .7:
            return self.pick("month days", x=month), f"{month} has {W.MONTH_DAYS[month]} days."
        return self.pick("month", x=W.ORDINALS[i]), f"The {W.ORDINALS[i]} month is {month}."

    def beyond(self):
        """A question of any words about what the model cannot know."""
        rng = self.rng

        def word():
            return rng.choice(self.lexicon) if self.chance(.4) else self.some_word()
        makers = {"w": word, "W": lambda: sentence_case(word()), "d": lambda: rng.choice(ARTICLES),
                  "v": lambda: self.part("who"), "i": lambda: rng.choice(["is", "are", "do", "does", "has"]),
                  "m": lambda: str(rng.randint(2, 99)), "o": lambda: rng.choice(OPERATIONS),
                  "f": lambda: rng.choice(PHRASES["foreign"])}
        text = re.sub(r"\{(\w)\}", lambda found: makers[found[1]](), rng.choice(PHRASES["beyond"]))
        return text + rng.choice(["?", ".", "?", ""])

    def decline(self):
        return self.loosely(self.unknown()), DECLINE, "decline"

    def unknown(self):
        rng = self.rng
        if self.hard and self.chance(.35):
            return self.beyond()
        if self.chance(.25):  # asked as if it were part of bitnet-chat
            x = " ".join(self.some_word() for _ in range(rng.choice([1, 1, 2])))
            if x not in TOPIC_NAMES:
                return sentence_case(self.phrase(PHRASES["help"], "").format(x=rng.choice(["", "the ", "a "]) + x))
        if self.chance(.4):
            return self.part("anything").format(x=self.some_word(), y=rng.choice(self.spell), n=rng.randint(2, 999))
        r = rng.random()
        if r < .17:
            return f"Who {self.part('who')} {self.part('things')}?"
        if r < .34:
            return self.pick("how", x=self.part("hows"))
        if r < .55:
            return self.pick("what", x=self.part("whats"))
        if r < .66:
            return f"Why {self.part('whys')}?"
        if r < .77:
            return self.pick("write", x=self.part("writes"))
        return self.part("other").format(c=rng.choice(list(W.CAPITALS)), t=self.value("home"), n=rng.randint(11, 99),
                                         f=rng.choice(PHRASES["foreign"]))

    def one_off(self):
        r = self.rng.random()
        return (self.help() if r < .18 else self.greet() if r < .23 else self.arith() if r < .41
                else self.word() if r < .72 else self.fact() if r < .85 else self.decline())

    # -- remembering --

    def telling(self, kind, x):
        """A way to tell this; the harder conversations put it into a saying now and then."""
        if (self.hard or self.held) and self.chance(.35):
            more = [] if self.held else TELL_MORE[kind]
            return sentence_case(self.rng.choice(tell_frames(kind, self.held) + more).format(x=x))
        text = self.phrase(TELL[kind], kind).format(x=x)
        if not self.hard or not self.chance(.15):
            return text
        said = text.rstrip(".!")
        said = said if said.startswith(("I ", "I'", x)) else said[:1].lower() + said[1:]
        saying = sentence_case(self.pick("sayings", s=said))
        held = [p.format(x=x) for p in pick_phrases(TELL[kind], True, kind)]
        return text if saying in held else saying

    def tell(self, known, kind):
        x = self.value(kind)
        text = self.telling(kind, x)
        if kind in known and known[kind] != x:
            begins = text.split()[0] in ("My", "The", "By", "You", "Call", "Please", "Remember")
            text = self.rng.choice(CHANGE) + (text[:1].lower() + text[1:] if begins else text)
        if self.chance(.07):
            text, x = text.lower(), x.lower()
        known[kind] = x
        answer = self.rng.choice(HEARD[kind][:1] if self.held else HEARD[kind]).format(x=x)
        return self.loosely(text if text.islower() else sentence_case(text), False), sentence_case(answer), "tell"

    def tell_two(self, known):
        one, two = self.rng.sample(KINDS, 2)
        known.pop(one, None)
        known.pop(two, None)
        a, b = self.tell(known, one), self.tell(known, two)
        joint = self.rng.choice([". ", " and ", ", and "])
        return f"{a[0].rstrip('.!')}{joint}{b[0]}", f"{a[1]} {b[1]}", "tell"

    def question(self, kind):
        if self.held and self.chance(.5):
            return self.rng.choice(late_frames(kind, True))
        if not self.hard or self.chance(.4):
            return self.phrase(ASK[kind], kind)
        return self.rng.choice(fill_frames(PHRASES["ask frames"], kind) + late_frames(kind, False)
                               + 3 * ASK_MORE[kind])

    def ask(self, known, kind):
        while True:
            question = self.question(kind)
            text = self.loosely(question)
            if self.held or not {bare_words(question), bare_words(text)} & self.kept_questions:
                break
        return text, RECALL[kind].format(x=known[kind]) if kind in known else NOT_TOLD[kind], "memory"

    def ask_all(self, known):
        said = " ".join(RECALL[kind].format(x=known[kind]) for kind in KINDS if kind in known)
        return self.pick("ask all"), said or NOTHING_TOLD, "memory"

    def conversation(self):
        """-> [(user, answer, kind)] of one to fourteen turns. The harder ones ask more for what was not told, and for
        everything."""
        rng = self.rng
        any_kind, everything, most = (.8, .9, 6) if self.hard else (.85, .94, 4)
        known, turns = {}, []
        n = rng.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 14])
        memory = self.chance(.75)
        for _ in range(n):
            r = rng.random()
            if not memory or r < .3:
                turns.append(self.one_off())
            elif r < .55 or not known and r < .85:
                turns.append(self.tell_two(known) if r < .35 else self.tell(known, rng.choice(KINDS)))
            elif r < any_kind and known:
                turns.append(self.ask(known, rng.choice(list(known))))
            elif r < everything:
                turns.append(self.ask(known, rng.choice(KINDS)))
            else:
                turns.append(self.ask_all(known) if len(known) <= most else self.ask(known, rng.choice(list(known))))
        return turns


SCORED = ("memory", "help", "arith", "word", "fact", "decline")


def print_held(n_questions, seed):
    """Conversations of at most eight turns, one JSON array a line, until so many questions are scored."""
    maker, n = Maker("held", random.Random(seed)), 0
    while n < n_questions:
        turns = maker.conversation()[:8]
        n += sum(kind in SCORED for _, _, kind in turns)
        print(json.dumps([{"user": u, "want": a, "kind": k} for u, a, k in turns]))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--split", choices=["train", "held"], default="train")
    ap.add_argument("--hard", action="store_true", help="the harder mixture of training")
    ap.add_argument("--n", type=int, default=20)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--questions", type=int, default=0)
    a = ap.parse_args()
    if a.questions:
        print_held(a.questions, a.seed)
        return
    maker = Maker(a.split, random.Random(a.seed), a.hard)
    for _ in range(a.n):
        for user, answer, kind in maker.conversation():
            print(f"User: {user}\nAssistant ({kind}): {answer}")
        print()


if __name__ == "__main__":
    main()
