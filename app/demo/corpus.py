#!/usr/bin/env python3
"""The conversations the demo model learns from, made up by a grammar.

usage: corpus.py [--split train|held] [--n N] [--seed S]        prints conversations, for people to read
       corpus.py --questions N [--seed S] > held.jsonl          held-out conversations with N scored questions

A conversation is a list of turns (user text, answer, kind). The user tells things about themselves and
asks for them turns later, asks about bitnet-chat, adds numbers, spells words, asks facts, or asks what
the model cannot know. Everything that has to generalise is split into a training and a held-out part:
names and things (words.py), numbers (by a hash of the operands), and phrasings
(combinations of the last quarter of each list). `Maker("held")` uses held-out things and phrasings only; it is what score.py asks. Invented words
stand among the real ones in training, so that the model learns to copy what it reads and not a list.
"""
import argparse
import json
import os
import random
import zlib

import words as W

HERE = os.path.dirname(os.path.abspath(__file__))
DECLINE = "I don't know. I am the small built-in demo model."
HEAR = "I see. Ask me what I can do, or tell me something about you."
ABOUT = ("I can remember what you tell me, explain bitnet-chat, add small numbers, spell words and tell "
         "simple facts.")


def read_topics():
    topics = []
    with open(os.path.join(HERE, "topics.txt"), encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    for names, answer in zip(lines[::2], lines[1::2]):
        topics.append(([name.strip() for name in names.split("|")], answer))
    return topics


TOPICS = read_topics()

# ---- phrasings: {x} is what is told or asked about; the last quarter of each list is held out ----

TELL = {
    "name": ["My name is {x}.", "I am {x}.", "I'm {x}.", "Call me {x}.", "Hi, I'm {x}.", "Hello, my name is {x}.",
             "My name's {x}.", "You can call me {x}.", "Hey, I am {x}.", "By the way, my name is {x}.", "I am called {x}.",
             "People call me {x}.", "Good morning, my name is {x}.", "Hello there, I'm {x}.", "Please call me {x}.",
             "Hi! My name is {x}."],
    "home": ["I live in {x}.", "I am from {x}.", "I'm from {x}.", "My home is {x}.", "I come from {x}.", "My home town is {x}.",
             "I live in the city of {x}.", "My city is {x}.", "I was born in {x} and live there.", "I have a flat in {x}.",
             "My house is in {x}.", "By the way, I live in {x}."],
    "colour": ["My favourite colour is {x}.", "I like the colour {x} best.", "{x} is my favourite colour.", "I love the colour {x}.",
               "The colour I like most is {x}.", "My favorite color is {x}.", "The best colour is {x}, I think.",
               "By the way, my favourite colour is {x}."],
    "food": ["My favourite food is {x}.", "I love eating {x}.", "I like {x} best of all food.", "The food I like most is {x}.",
             "I could eat {x} every day.", "My favorite food is {x}.", "Nothing tastes better than {x}.",
             "By the way, my favourite food is {x}."],
    "animal": ["My favourite animal is the {x}.", "I like the {x} best of all animals.", "The animal I like most is the {x}.",
               "My favorite animal is the {x}.", "Of all animals I love the {x} most.", "The {x} is my favourite animal.",
               "The best animal is the {x}, I think.", "By the way, my favourite animal is the {x}."],
    "hobby": ["My hobby is {x}.", "I like {x} in my free time.", "In my free time I enjoy {x}.", "I spend my weekends {x}.",
              "My favourite hobby is {x}.", "I am fond of {x}.", "What I do for fun is {x}.", "By the way, my hobby is {x}."],
    "job": ["I work as a {x}.", "My job is {x}.", "I am a {x} by trade.", "I earn my money as a {x}.", "My profession is {x}.",
            "At work I am a {x}.", "For a living I work as a {x}.", "By the way, I work as a {x}."],
    "pet": ["My pet is called {x}.", "I have a pet named {x}.", "My pet's name is {x}.", "I have a pet called {x}.",
            "The name of my pet is {x}.", "At home I have a pet named {x}.", "We call our pet {x}.", "By the way, my pet is called {x}."],
    "number": ["My lucky number is {x}.", "My favourite number is {x}.", "Remember the number {x}.", "The number to remember is {x}.",
               "Please remember the number {x}.", "Keep the number {x} in mind.", "Note the number {x}.", "By the way, my lucky number is {x}."],
    "drink": ["My favourite drink is {x}.", "I like to drink {x}.", "I drink {x} every morning.", "The drink I like most is {x}.",
              "My favorite drink is {x}.", "I always drink {x}.", "Nothing beats a cup of {x}.", "By the way, my favourite drink is {x}."],
    "season": ["My favourite season is {x}.", "I like {x} best of all seasons.", "The season I like most is {x}.", "I love {x}, the season.",
               "My favorite season is {x}.", "Of all seasons I love {x} most.", "The best season is {x}.", "By the way, my favourite season is {x}."],
}
ASK = {
    "name": ["What is my name?", "What's my name?", "Who am I?", "Do you know my name?", "Do you remember my name?", "Tell me my name.",
             "Can you tell me my name?", "What am I called?", "Say my name.", "Which name did I tell you?", "And what was my name?", "Remember my name?"],
    "home": ["Where do I live?", "Where am I from?", "What is my home town?", "Which city do I live in?", "Do you know where I live?",
             "Do you remember where I live?", "Tell me where I live.", "Where is my home?", "In which city do I live?", "And where do I live?", "Where did I say I live?", "Can you tell me where I live?"],
    "colour": ["What is my favourite colour?", "What's my favourite colour?", "Which colour do I like?", "Which colour do I like best?",
               "Do you remember my favourite colour?", "Tell me my favourite colour.", "What is my favorite color?", "Do you know my favourite colour?", "And what is my favourite colour?", "Which colour is my favourite?"],
    "food": ["What is my favourite food?", "What's my favourite food?", "What do I like to eat?", "Which food do I like best?",
             "Do you remember my favourite food?", "Tell me my favourite food.", "What is my favorite food?", "Do you know my favourite food?", "And what is my favourite food?", "Which food is my favourite?"],
    "animal": ["What is my favourite animal?", "What's my favourite animal?", "Which animal do I like?", "Which animal do I like best?",
               "Do you remember my favourite animal?", "Tell me my favourite animal.", "What is my favorite animal?", "Do you know my favourite animal?", "And what is my favourite animal?", "Which animal is my favourite?"],
    "hobby": ["What is my hobby?", "What's my hobby?", "What do I do in my free time?", "What do I like to do?", "Do you remember my hobby?",
              "Tell me my hobby.", "Do you know my hobby?", "And what is my hobby?", "Which hobby do I have?", "What do I do for fun?"],
    "job": ["What is my job?", "What's my job?", "What do I do for a living?", "What do I work as?", "Do you remember my job?",
            "Tell me my job.", "Do you know my job?", "And what is my job?", "Which job do I have?", "What is my profession?"],
    "pet": ["What is my pet called?", "What is my pet's name?", "What's the name of my pet?", "Who is my pet?", "Do you remember my pet's name?",
            "Tell me my pet's name.", "Do you know the name of my pet?", "And what is my pet called?", "How do I call my pet?", "What's my pet called?"],
    "number": ["What is my lucky number?", "What's my number?", "Which number did I tell you?", "Which number should you remember?", "Do you remember the number?",
               "Tell me the number.", "What was the number?", "Do you know my number?", "And what was my number?", "What number did I say?"],
    "drink": ["What is my favourite drink?", "What's my favourite drink?", "What do I like to drink?", "Which drink do I like best?", "Do you remember my favourite drink?",
              "Tell me my favourite drink.", "What is my favorite drink?", "Do you know my favourite drink?", "And what is my favourite drink?", "Which drink is my favourite?"],
    "season": ["What is my favourite season?", "What's my favourite season?", "Which season do I like?", "Which season do I like best?", "Do you remember my favourite season?",
               "Tell me my favourite season.", "What is my favorite season?", "Do you know my favourite season?", "And what is my favourite season?", "Which season is my favourite?"],
}
HEARD = {  # answers to being told; the first sentence names the thing, so that it is looked at at once
    "name": ["Nice to meet you, {x}.", "Hello, {x}.", "Hi {x}, nice to meet you."],
    "home": ["{x}, I will remember that.", "You live in {x}. Good to know."],
    "colour": ["{x} is a fine colour. I will remember it.", "{x}, I will remember that."],
    "food": ["{x}, that sounds tasty. I will remember it.", "{x}, I will remember that."],
    "animal": ["The {x}, I will remember that.", "The {x} is a fine animal."],
    "hobby": ["{x}, that sounds like fun.", "{x}, I will remember that."],
    "job": ["A {x}, I will remember that.", "So you work as a {x}."],
    "pet": ["{x} is a good name for a pet.", "{x}, I will remember that."],
    "number": ["{x}, I will remember that.", "I will remember the number {x}."],
    "drink": ["{x}, I will remember that.", "{x} is a good choice."],
    "season": ["{x}, I will remember that.", "{x} is a fine season."],
}
RECALL = {
    "name": "Your name is {x}.", "home": "You live in {x}.", "colour": "Your favourite colour is {x}.",
    "food": "Your favourite food is {x}.", "animal": "Your favourite animal is the {x}.", "hobby": "Your hobby is {x}.",
    "job": "You work as a {x}.", "pet": "Your pet is called {x}.", "number": "Your number is {x}.",
    "drink": "Your favourite drink is {x}.", "season": "Your favourite season is {x}.",
}
NOT_TOLD = {
    "name": "You have not told me your name yet.", "home": "You have not told me where you live yet.",
    "colour": "You have not told me your favourite colour yet.", "food": "You have not told me your favourite food yet.",
    "animal": "You have not told me your favourite animal yet.", "hobby": "You have not told me your hobby yet.",
    "job": "You have not told me your job yet.", "pet": "You have not told me your pet's name yet.",
    "number": "You have not told me a number yet.", "drink": "You have not told me your favourite drink yet.",
    "season": "You have not told me your favourite season yet.",
}
CHANGE = ["Actually, ", "No, wait: ", "I was wrong: ", "Sorry, ", "Correction: ", "I changed my mind: "]

HELP = ["What does {x} do?", "How do I use {x}?", "Explain {x}.", "Tell me about {x}.", "What is {x}?", "What about {x}?", "Can you explain {x}?",
        "Help me with {x}.", "{x}?", "I don't understand {x}.", "How does {x} work?", "What can you tell me about {x}?", "What is {x} for?",
        "I have a question about {x}.", "Please explain {x}.", "Do you know {x}?", "I want to know about {x}.", "Show me how {x} works."]
GREET = [("Hello", "Hello! What can I do for you?"), ("Hi", "Hello! What can I do for you?"), ("Hey", "Hello! What can I do for you?"),
         ("Hello there", "Hello! What can I do for you?"), ("Good morning", "Good morning! What can I do for you?"),
         ("Good evening", "Good evening! What can I do for you?"), ("Good afternoon", "Good afternoon! What can I do for you?"),
         ("How are you", "I am fine, thank you. How are you?"), ("How are you doing", "I am fine, thank you. How are you?"),
         ("How is it going", "I am fine, thank you. How are you?"), ("I am fine", "Good to hear."), ("I am fine, thanks", "Good to hear."),
         ("Thank you", "You are welcome."), ("Thanks", "You are welcome."), ("Thanks a lot", "You are welcome."), ("Thank you very much", "You are welcome."),
         ("Goodbye", "Goodbye! Come back soon."), ("Bye", "Goodbye! Come back soon."), ("See you later", "Goodbye! Come back soon."), ("Good night", "Good night! Come back soon."),
         ("Who are you", "I am the small built-in demo model of bitnet-chat."), ("What are you", "I am the small built-in demo model of bitnet-chat."),
         ("What is your name", "I have no name. I am the small built-in demo model."), ("What's your name", "I have no name. I am the small built-in demo model."),
         ("Are you a robot", "I am a program: the small built-in demo model."), ("Are you human", "No, I am a program: the small built-in demo model."),
         ("What can you do", ABOUT), ("What can I ask you", ABOUT), ("What do you know", ABOUT), ("How can you help me", ABOUT), ("Help", ABOUT), ("help me", ABOUT),
         ("That is great", "I am glad to hear that."), ("Great", "I am glad to hear that."), ("Cool", "I am glad to hear that."), ("Nice", "I am glad to hear that."), ("OK", "Good. What else can I do?"), ("Okay", "Good. What else can I do?"),
         ("That is wrong", "I am sorry. I am only a small model."), ("You are wrong", "I am sorry. I am only a small model."), ("You are stupid", "I am sorry. I am only a small model."), ("You are funny", "Thank you, I do my best."), ("Well done", "Thank you, I do my best."), ("Good job", "Thank you, I do my best."),
         ("How old are you", "I was trained not long ago, so I am very young."), ("How big are you", "I am small: about five million ternary weights."), ("Tell me a joke", "Why did the weight feel balanced? It was zero.")]

ADD = ["What is {a} + {b}?", "What is {a} plus {b}?", "{a} + {b} =", "{a} + {b}", "Add {a} and {b}.", "How much is {a} plus {b}?", "Compute {a} + {b}.", "What's {a} + {b}?",
       "Can you add {a} and {b}?", "Calculate {a} plus {b}.", "{a} plus {b}?", "Tell me the sum of {a} and {b}."]
SUB = ["What is {a} - {b}?", "What is {a} minus {b}?", "{a} - {b} =", "{a} - {b}", "Subtract {b} from {a}.", "How much is {a} minus {b}?", "Compute {a} - {b}.", "What's {a} - {b}?",
       "Can you take {b} from {a}?", "Calculate {a} minus {b}.", "{a} minus {b}?", "Tell me the difference of {a} and {b}."]

SPELLS = ['Spell "{x}".', 'How do you spell "{x}"?', 'Spell the word "{x}".', 'Can you spell "{x}"?', 'Please spell "{x}".', 'Spell out "{x}".', 'Tell me how to spell "{x}".', 'What are the letters of "{x}"?']
REVERSES = ['Reverse "{x}".', 'Spell "{x}" backwards.', 'Write "{x}" backwards.', 'Reverse the word "{x}".', 'What is "{x}" backwards?', 'Please reverse "{x}".', 'Turn "{x}" around.', 'Say "{x}" backwards.']
COUNTS = ['How many letters are in "{x}"?', 'How many letters has "{x}"?', 'Count the letters of "{x}".', 'How long is the word "{x}"?', 'Count the letters in "{x}".', 'How many letters does "{x}" have?', 'Tell me the number of letters in "{x}".', 'Please count the letters of "{x}".']
REPEATS = ['Repeat "{x}".', 'Say "{x}".', 'Repeat after me: "{x}".', 'Please repeat "{x}".', 'Can you say "{x}"?', 'Write "{x}".', 'Please say "{x}".', 'Repeat the words "{x}".']
WORDS_IN = ['How many words are in "{x}"?', 'Count the words in "{x}".', 'How many words has "{x}"?', 'Count the words of "{x}".', 'Tell me the number of words in "{x}".', 'How many words does "{x}" have?', 'Please count the words in "{x}".', 'Number of words in "{x}"?']
FIRSTS = ['What is the first letter of "{x}"?', 'Which letter does "{x}" begin with?', 'First letter of "{x}"?', 'Tell me the first letter of "{x}".']
LASTS = ['What is the last letter of "{x}"?', 'Which letter does "{x}" end with?', 'Last letter of "{x}"?', 'Tell me the last letter of "{x}".']

WHO = """wrote painted invented discovered built composed directed designed founded won sold bought stole found made""".split()
THINGS = """Hamlet|the telephone|America|the Eiffel Tower|the Ninth Symphony|Star Wars|penicillin|the Mona Lisa|the steam engine|the World Cup|Faust|the radio|
the light bulb|the pyramids|Macbeth|gravity|the printing press|the internet|a good novel|the Odyssey|relativity|electricity|the Great Wall|dynamite|the zipper|Ulysses|the compass|the bicycle""".replace("\n", "").split("|")
HOWS = """bake a cake|fix my car|tie a tie|build a house|learn French|lose weight|write a poem|grow roses|sail a boat|play chess|cook lobster|make money|find a job|repair a bike|plant a tree|sew a shirt|change a tyre|paint a wall|
get to the airport|open a bank account|clean a carpet|train a puppy|file my taxes|write a novel|play the piano|make wine|draw a face|knit a scarf|swim faster|sleep better|install a printer|fly a kite""".replace("\n", "").split("|")
WHATS = """the weather|the time|the news|the meaning of life|the price of gold|the height of Everest|the speed of light|photosynthesis|a black hole|inflation|the population of Asia|quantum physics|the tallest building|a derivative|the law of gravity|the stock market|
democracy|an enzyme|the date today|the distance to the moon|your favourite film|the oldest tree|a haiku|calculus|plate tectonics|a mortgage|the deepest lake|the best phone|chemistry|the fastest car|a neutron|the longest river|the score of the game""".replace("\n", "").split("|")
WHYS = """is the sky blue|do cats purr|is water wet|do we dream|does ice float|are leaves green|do birds migrate|is the sea salty|do stars shine|does wood burn|is fire hot|do people laugh|does rain fall|is space dark|do we sleep|does metal rust|is gold rare|do volcanoes erupt""".split("|")
WRITES = """a poem about the sea|a story about a dragon|an essay on war|a letter to my boss|a song|a speech|some Python code|a business plan|a recipe for soup|a short story|a haiku|a rap|a sonnet|a shopping app|a report on climate|a love letter|a limerick|a web page""".split("|")
FOREIGN = """French|German|Spanish|Latin|Japanese|Chinese|Italian|Russian|Greek|Arabic""".split("|")
OTHER = ["Who is the president of {c}?", "Who is the king of {c}?", "What is the population of {c}?", "How far is it to {t}?", "What is the best restaurant in {t}?", "When was {t} founded?",
         "What language do they speak in {c}?", "Is {c} a rich country?", "How big is {c}?", "Will it rain in {t} tomorrow?", "What is 3 times {n}?", "What is the square root of {n}?", "What happened in 19{n}?", "Book a flight to {t}.", "Which team won in {t}?",
         "Translate good morning into {f}.", "How do you say thank you in {f}?", "Do you speak {f}?"]


ANYTHING = ["What is a {x}?", "Tell me about the {x}.", "Who made the first {x}?", "How do I make a {x}?", "Where can I buy a {x}?", "What is the best {x}?", "Why is the {x} so {y}?", "How much does a {x} cost?",
            "Write a poem about a {x}.", "Do you like the {x}?", "Is a {x} better than a {y}?", "What does {x} mean?", "Explain how a {x} works.", "How many {x} are there?", "When was the {x} invented?", "Write me a story about a {x} and a {y}.",
            "What is the difference between a {x} and a {y}?", "Where is the {x}?", "Can you draw a {x}?", "Recommend a {x}.", "Who is {x} {y}?", "What happened in {n}?", "Describe a {x}.", "Give me a recipe with {x}.",
            "Translate {x} into French.", "How old is the {x}?", "What do you think of the {x}?", "Show me a picture of a {x}.", "What is {n} times {n}?", "Which {x} should I buy?", "How heavy is a {x}?", "Tell me a story about a {x}.",
            "Can a {x} {y}?", "Who is the best {x} in the world?", "What are {x} and {y}?", "How do I fix my {x}?", "Why do people {x}?", "Are there {x} on the moon?", "Name a famous {x}.", "Write code for a {x}."]
SAY = ["I am tired", "It is raining", "I bought a {x}", "I saw a {x} today", "I like you", "I am hungry", "My {x} is broken", "I had a {x} for lunch", "The weather is nice", "I am bored", "I lost my {x}", "I am happy today", "It is late", "I need a {x}",
       "I went to the {x}", "The {x} is {y}", "I do not like the {x}", "Let us talk", "Test", "{x}", "I have a {x} and a {y}", "This is a {x}", "Yes", "No", "Maybe", "Haha", "lol", "I think so", "Really", "Hmm"]
LEADS = ["So, ", "OK, ", "And ", "Now, ", "Well, ", "Hey, ", "Please, ", "One question: ", "Hello, ", "Hi, "]
TAILS = [", please.", " please", ", thanks.", " now?", " then?", "??", "!"]
LOWERED = frozenset("What What's Which Who Where When Why How Tell Can Do Explain Show Remember Name List Say Is Are Write Give Help Please Describe".split())


def pick_phrases(phrases, held, key):
    """Of the last quarter of a list every other phrasing is held out, another half for another key: a held-out question
    is a combination that was never seen, of words that were."""
    cut = len(phrases) - max(1, len(phrases) // 4)
    late = [p for i, p in enumerate(phrases[cut:]) if (i + zlib.crc32(key.encode()) % 7) % 2]
    return late if held and late else [p for p in phrases if p not in late]


def operands_held(a, b):
    return (a * 7919 + b * 104729) % 8 == 0


def sentence_case(text):
    return text[:1].upper() + text[1:]


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


class Maker:
    """Makes conversations of one split from one random generator."""

    def __init__(self, split="train", rng=None):
        self.held = split == "held"
        self.rng = rng or random.Random(1)
        part = 1 if self.held else 0
        get = lambda items: W.split(items)[part]
        self.values = {"name": get(W.NAMES), "home": get(W.TOWNS), "colour": W.COLOURS, "food": get(W.FOODS), "animal": get(W.ANIMALS),
                       "hobby": get(W.HOBBIES), "job": get(W.JOBS), "pet": get(W.PET_NAMES), "drink": W.DRINKS, "season": W.SEASONS}
        self.spell = get(W.SPELL)
        self.inventors = {}
        for kind, words in (("name", W.NAMES), ("home", W.TOWNS), ("pet", W.PET_NAMES), ("food", W.FOODS + W.SPELL),
                            ("animal", W.ANIMALS + W.SPELL), ("job", W.JOBS + W.SPELL), ("hobby", W.HOBBIES), ("spell", W.SPELL)):
            train, kept = W.split(words)
            self.inventors[kind] = Inventor([w for w in train if "-" not in w], kept + W.SPELL[8::9])

    # -- small things --

    def phrase(self, phrases, key):
        return self.rng.choice(pick_phrases(phrases, self.held, key))

    def value(self, kind):
        if kind == "number":
            while True:
                n = self.rng.randint(1, 99) if self.rng.random() < .6 else self.rng.randint(100, 999)
                if (n % 8 == 0) == self.held:
                    return str(n)
        if kind in self.inventors and not self.held and self.rng.random() < .4:
            return self.inventors[kind].word(self.rng)
        return self.rng.choice(self.values[kind])

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
        if r > .88:
            text = text[:1].lower() + text[1:] if not text.startswith("I ") and not text.startswith("I'") else text
        return text

    # -- one-off turns: (user, answer, kind) --

    def help(self):
        names, answer = self.rng.choice(TOPICS)
        name = self.rng.choice([n for n in names if not (self.held and n.startswith("?"))])
        if name.startswith("?"):
            return self.loosely(name[1:]), answer, "help"
        return self.loosely(sentence_case(self.phrase(HELP, name).format(x=name))), answer, "help"

    def greet(self):
        if self.rng.random() < .25:
            x, y = self.some_word(), self.some_word()
            return self.loosely(self.rng.choice(SAY).format(x=x, y=y) + self.rng.choice(["", ".", "!"])), HEAR, "chat"
        q, a = self.rng.choice(GREET)
        end = "?" if q.split()[0] in ("How", "Who", "What", "What's", "Are") else self.rng.choice(["", ".", "!"])
        return self.loosely(q + end), a, "chat"

    def arith(self):
        while True:
            top = 99 if self.rng.random() < .7 else 20
            a, b = self.rng.randint(0, top), self.rng.randint(0, top)
            if operands_held(a, b) == self.held:
                break
        if self.rng.random() < .5:
            return self.rng.choice(ADD).format(a=a, b=b), added(a, b), "arith"
        if a < b:
            a, b = b, a
        if operands_held(a, b) != self.held:
            return self.arith()
        return self.rng.choice(SUB).format(a=a, b=b), subtracted(a, b), "arith"

    def some_word(self):
        if not self.held and self.rng.random() < .5:
            return self.inventors["spell"].word(self.rng)
        return self.rng.choice(self.spell)

    def word(self):
        x = self.some_word()
        r = self.rng.random()
        letters = "-".join(x)
        if r < .25:
            return self.rng.choice(SPELLS).format(x=x), f"{letters}.", "word"
        if r < .45:
            return self.rng.choice(REVERSES).format(x=x), f"{letters}, so backwards {'-'.join(x[::-1])}: {x[::-1]}.", "word"
        if r < .6:
            counted = ", ".join(f"{i + 1} {c}" for i, c in enumerate(x))
            return self.rng.choice(COUNTS).format(x=x), f"{counted}: {len(x)} letters.", "word"
        if r < .68:
            return self.rng.choice(FIRSTS).format(x=x), f"{x[0]}.", "word"
        if r < .75:
            return self.rng.choice(LASTS).format(x=x), f"{letters}, so {x[-1]}.", "word"
        n = self.rng.randint(1, 5)
        text = " ".join(self.some_word() for _ in range(n))
        if r < .9:
            return self.rng.choice(REPEATS).format(x=text), f"{text}.", "word"
        counted = ", ".join(f"{i + 1} {w}" for i, w in enumerate(text.split()))
        return self.rng.choice(WORDS_IN).format(x=text), f"{counted}: {n} word{'s' if n > 1 else ''}.", "word"

    def fact(self):
        question, answer, kind = self.some_fact()
        return self.loosely(question), answer, kind

    def some_fact(self):
        rng, r = self.rng, self.rng.random()
        if r < .4:
            c, city = rng.choice(list(W.CAPITALS.items()))
            q = rng.choice(["What is the capital of {c}?", "Capital of {c}?", "What's the capital of {c}?", "Name the capital of {c}.", "Tell me the capital of {c}.", "Which city is the capital of {c}?"])
            return q.format(c=c), f"The capital of {c} is {city}.", "fact"
        if r < .5:
            i = rng.randrange(7)
            day, after, before = W.DAYS[i], W.DAYS[(i + 1) % 7], W.DAYS[i - 1]
            if rng.random() < .5:
                return rng.choice(["Which day comes after {d}?", "What day is after {d}?", "What comes after {d}?"]).format(d=day), f"{after} comes after {day}.", "fact"
            return rng.choice(["Which day comes before {d}?", "What day is before {d}?", "What comes before {d}?"]).format(d=day), f"{before} comes before {day}.", "fact"
        if r < .62:
            i = rng.randrange(12)
            m = W.MONTHS[i]
            k = rng.random()
            if k < .35:
                return rng.choice(["Which month comes after {m}?", "What month is after {m}?", "What comes after {m}?"]).format(m=m), f"{W.MONTHS[(i + 1) % 12]} comes after {m}.", "fact"
            if k < .7:
                return rng.choice(["How many days has {m}?", "How many days are in {m}?", "How long is {m}?"]).format(m=m), f"{m} has {W.MONTH_DAYS[m]} days.", "fact"
            return rng.choice(["What is the {o} month?", "Which is the {o} month?", "Name the {o} month."]).format(o=W.ORDINALS[i]), f"The {W.ORDINALS[i]} month is {m}.", "fact"
        if r < .7:
            i = rng.randrange(8)
            return rng.choice(["What is the {o} planet?", "Which is the {o} planet from the sun?", "Name the {o} planet."]).format(o=W.ORDINALS[i]), f"The {W.ORDINALS[i]} planet is {W.PLANETS[i]}.", "fact"
        if r < .82:
            a, b = rng.choice(list(W.OPPOSITES.items()))
            if rng.random() < .3 and list(W.OPPOSITES.values()).count(b) == 1 and b not in W.OPPOSITES:
                a, b = b, a
            return rng.choice(["What is the opposite of {a}?", "Opposite of {a}?", "What's the opposite of {a}?", "Tell me the opposite of {a}."]).format(a=a), f"The opposite of {a} is {b}.", "fact"
        if r < .93:
            a, b = rng.choice(list(W.PLURALS.items()))
            return rng.choice(["What is the plural of {a}?", "Plural of {a}?", "What's the plural of {a}?", "Tell me the plural of {a}."]).format(a=a), f"The plural of {a} is {b}.", "fact"
        if r < .97:
            a, b = rng.choice(list(W.THING_COLOURS.items()))
            return rng.choice(["What colour is {a}?", "Which colour is {a}?", "What is the colour of {a}?"]).format(a=a), f"{sentence_case(a)} is {b}.", "fact"
        lists = [("the days of the week", W.DAYS), ("the planets", W.PLANETS), ("the months", W.MONTHS), ("the seasons", W.SEASONS)]
        name, items = rng.choice(lists)
        return rng.choice(["List {x}.", "Name {x}.", "Tell me {x}.", "What are {x}?"]).format(x=name), ", ".join(items) + ".", "fact"

    def decline(self):
        rng, r = self.rng, self.rng.random()
        part = (lambda items: [w for i, w in enumerate(items) if (i % 4 == 3) == self.held])
        if rng.random() < .4:
            x, y = self.some_word(), rng.choice(self.spell)
            return self.loosely(rng.choice(part(ANYTHING)).format(x=x, y=y, n=rng.randint(2, 999))), DECLINE, "decline"
        if r < .17:
            q = f"Who {rng.choice(part(WHO))} {rng.choice(part(THINGS))}?"
        elif r < .34:
            q = rng.choice(["How do I {x}?", "How can I {x}?", "How to {x}?", "Teach me to {x}.", "Help me {x}."]).format(x=rng.choice(part(HOWS)))
        elif r < .55:
            q = rng.choice(["What is {x}?", "What's {x}?", "Tell me about {x}.", "Explain {x}.", "Do you know {x}?"]).format(x=rng.choice(part(WHATS)))
        elif r < .66:
            q = f"Why {rng.choice(part(WHYS))}?"
        elif r < .77:
            q = rng.choice(["Write {x}.", "Can you write {x}?", "Please write {x}.", "Write me {x}."]).format(x=rng.choice(part(WRITES)))
        else:
            q = rng.choice(part(OTHER)).format(c=rng.choice(list(W.CAPITALS)), t=self.value("home"), n=rng.randint(11, 99), f=rng.choice(FOREIGN))
        return self.loosely(q), DECLINE, "decline"

    def one_off(self):
        r = self.rng.random()
        return (self.help() if r < .2 else self.greet() if r < .27 else self.arith() if r < .51
                else self.word() if r < .82 else self.fact() if r < .9 else self.decline())

    # -- remembering --

    def tell(self, known, kind):
        x = self.value(kind)
        text = self.phrase(TELL[kind], kind).format(x=x)
        if kind in known and known[kind] != x:
            lead = self.rng.choice(CHANGE)
            text = lead + (text if text.startswith("I") else text[:1].lower() + text[1:] if text.split()[0] in ("My", "The", "By", "You", "Call", "Please", "Remember") else text)
        if self.rng.random() < .07:
            text, x = text.lower(), x.lower()
        known[kind] = x
        answer = self.rng.choice(HEARD[kind][:1] if self.held else HEARD[kind]).format(x=x)
        return self.loosely(text if text.islower() else sentence_case(text), False), sentence_case(answer), "tell"

    def tell_two(self, known):
        one, two = self.rng.sample(list(TELL), 2)
        known.pop(one, None)
        known.pop(two, None)
        a, b = self.tell(known, one), self.tell(known, two)
        return f"{a[0].rstrip('.!')}{self.rng.choice(['. ', ' and ', ', and '])}{b[0]}", f"{a[1]} {b[1]}", "tell"

    def ask(self, known, kind):
        text = self.loosely(self.phrase(ASK[kind], kind))
        if kind in known:
            return text, RECALL[kind].format(x=known[kind]), "memory"
        return text, NOT_TOLD[kind], "memory"

    def ask_all(self, known):
        said = " ".join(RECALL[k].format(x=v) for k, v in known.items())
        return self.rng.choice(["What do you know about me?", "Tell me what you know about me.", "What did I tell you?"]), said or "You have not told me anything yet.", "memory"

    def conversation(self):
        """-> [(user, answer, kind)] of one to fourteen turns."""
        rng = self.rng
        known, turns = {}, []
        n = rng.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 14])
        memory = rng.random() < .75
        for i in range(n):
            r = rng.random()
            if not memory or r < .3:
                turns.append(self.one_off())
            elif r < .55 or not known and r < .85:
                turns.append(self.tell_two(known) if r < .35 else self.tell(known, rng.choice(list(TELL))))
            elif r < .93 and known:
                turns.append(self.ask(known, rng.choice(list(known))))
            elif r < .97:
                turns.append(self.ask(known, rng.choice(list(ASK))))
            else:
                turns.append(self.ask_all(known) if len(known) <= 4 else self.ask(known, rng.choice(list(known))))
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
    ap.add_argument("--n", type=int, default=20)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--questions", type=int, default=0)
    a = ap.parse_args()
    if a.questions:
        print_held(a.questions, a.seed)
        return
    maker = Maker(a.split, random.Random(a.seed))
    for _ in range(a.n):
        for user, answer, kind in maker.conversation():
            print(f"User: {user}\nAssistant ({kind}): {answer}")
        print()


if __name__ == "__main__":
    main()
