"""Reads the files of phrasings and topics."""
import itertools
import os
import re
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = re.compile(r"\(([^()]*)\)")  # (a/b/) in a template


def lines_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def read_phrases(*files):
    """-> {section: phrasings}, {section: answer}"""
    phrases, answers = {}, {}
    for line in sum(map(lines_of, files), []):
        if line.startswith("["):
            section = line.strip("[]")
            phrases[section] = []
        elif line.startswith("= "):
            answers[section] = line[2:]
        else:
            phrases[section] += [phrase.strip() for phrase in line.removesuffix("|").split(" | ")]
    return phrases, answers


def spaced(text):
    """The text with single spaces and none before a mark, as alternatives that stand for nothing may leave them."""
    return re.sub(r" +([,.?!]|$)", r"\1", re.sub(" +", " ", text.strip()))


def expanded(template, rng):
    """One of the phrasings of a template, in which (a/b/) stands for a, b or nothing."""
    return spaced(GROUP.sub(lambda group: rng.choice(group[1].split("/")), template))


def all_of(template):
    """All phrasings of a template, as expanded() makes them."""
    parts = GROUP.split(template)  # fixed text and alternatives in turn
    choices = [part.split("/") if i % 2 else [part] for i, part in enumerate(parts)]
    return {spaced("".join(chosen)) for chosen in itertools.product(*choices)}


def filled(phrase, **parts):
    """The phrase with its placeholders filled in. "A" before one becomes "an" if a vowel follows."""
    def article(found):
        letter = unicodedata.normalize("NFD", str(parts[found[2]])[:1].lower())[:1]
        return f"{found[1]}n {{{found[2]}}}" if letter and letter in "aeiou" else found[0]
    return re.sub(r"\b([Aa]) {(\w+)}", article, phrase).format(**parts)


def bare_words(text):
    return " ".join(re.findall(r"(?:[^\W\d_]|')+", text.lower()))


def sentence_case(text):
    return text[:1].upper() + text[1:]
