"""
Messages that tell several facts at once: of the user ("I'm Ada, an actor from Bern") and of other people ("My wife Mia
is a cook and my son Leo lives in Rome"). The phrasings are for training only.
"""
import re

from phrase_files import bare_words, filled, sentence_case

PLACEHOLDER = re.compile(r"{(\w+)}")


def joined(maker, first, second, remembered):
    """One turn of two statements. Both answers begin with `remembered`, which is said once."""
    joints = [". ", " and ", ", and "]
    if maker.hard:
        joints += [". ", " and ", ", ", ", ", "; ", " but ", ", but "]
    joint, says = maker.rng.choice(joints), second[0]
    if maker.hard and joint != ". ":
        says = lowered(says)
    kind = "given" if "given" in (first[2], second[2]) else "tell"
    return f"{first[0].rstrip('.!')}{joint}{says}", f"{first[1]} {second[1].removeprefix(remembered)}", kind


def lowered(text):
    """A statement after other words. A name at its beginning keeps its capital."""
    return text[:1].lower() + text[1:] if text.startswith(("My ", "The ", "We ", "Our ", "You ", "In ")) else text


def contains_held(template, kept):
    """
    Whether the template is a statement of one of its facts that is held out. `kept` are those statements by
    placeholder, in the words of corpus.bare_phrases().
    """
    for one in PLACEHOLDER.findall(template):
        text = PLACEHOLDER.sub(lambda found: "xx" if found[1] == one else "ss" if found[1] == "r" else "yy", template)
        bare = f" {bare_words(text)} "
        if any(f" {phrase} " in bare for phrase in kept.get(one.rstrip("2"), ())):
            return True
    return False


def template(maker, section, kept):
    """A phrasing of this section in which nothing is held out."""
    while True:
        text = maker.also(section)
        if not contains_held(text, kept):
            return text


def message(maker, template_text, values):
    """The template as users type it. A value at the beginning keeps its case, which the answer repeats."""
    text = filled(template_text, **values)
    text = text if template_text.startswith("{") else sentence_case(text)
    text += maker.rng.choice(("", ".", ".", "!")) if text[-1] not in ".!?" else ""
    return maker.said_loosely(text, values[PLACEHOLDER.search(template_text)[1]])


def own_facts(maker, known):
    """-> the message and the kinds that it tells, in their order. Adds the values to `known`."""
    text = template(maker, "tell several", maker.kept_statements)
    kinds = PLACEHOLDER.findall(text)
    values = {kind: maker.value(kind) for kind in kinds}
    known.update(values)
    return message(maker, text, values), kinds
