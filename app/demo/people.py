"""Conversations about several people whose facts must not be mixed up, with corrections of the last statement."""
import re
from dataclasses import dataclass

from phrase_files import sentence_case

# An answer to a statement ends with the sentence that later answers the question for it, word by word. The answer to a
# question whose fact was not told begins with the same words ("Your name is something that you have not told me yet.").
# So the model finds a fact by the words of its own answers, and decides by them whether the fact was told.
REMEMBERED = "I will remember that. "
CORRECTED = "I see. "
FACTS = ("name", "home", "food", "job", "pet")


@dataclass(frozen=True)
class Person:
    """A person as the user and as the answers say it. The user's own facts have says None."""
    says: str | None
    answer: str | None

    @property
    def is_user(self):
        return self.says is None


USER = Person(None, None)


def not_told_end(answer):
    """The end of an answer about a fact that was not told, where it differs from the answer with the fact."""
    return re.search(r"(?:something|a place) that you have not told me yet(?=\.$)", answer)[0]


class People:
    """Makes turns of one conversation. `maker` supplies phrasings and values of its part (training or held out)."""

    def __init__(self, maker):
        self.maker, self.known = maker, {}
        self.last = None  # (person, fact) of the last statement

    def person(self):
        maker = self.maker
        if maker.chance(.55):
            relation = maker.rng.choice(maker.phrases["relations"])
            return Person("my " + relation, "your " + relation)
        name = maker.value("name")
        return Person(name, name)

    def facts_of(self, person):
        """A name that the user says instead of a relation has no other name."""
        return FACTS if person.is_user or person.says.startswith("my ") else FACTS[1:]

    def fill(self, phrase, person, **parts):
        """A value at the beginning keeps its case, so that the answer can repeat it."""
        text = phrase.format(s=person.says, a=person.answer, **parts)
        return text if phrase.startswith("{x}") else sentence_case(text)

    def recall(self, person, fact):
        maker, x = self.maker, self.known[person, fact]
        phrase = maker.recall_own[fact] if person.is_user else maker.phrases["other recall " + fact][0]
        return self.fill(phrase, person, x=x)

    def can_be_named(self, person, fact):
        """Whether a statement of this fact may also tell the name of the person. No held-out statement does."""
        return (fact != "name" and not person.is_user and "name" in self.facts_of(person)
                and (person, "name") not in self.known and not self.maker.held)

    def tell_with_name(self, person, fact):
        """A fact of a relation whose name stands beside it: "My brother Nuno is a plumber." """
        maker, said = self.maker, self.maker.of_others("tell", fact)
        forms = (" {}", " called {}", ", {},") if re.search(r"\{s\} [a-z]", said) else (" {}",)
        name, x = maker.value("name"), maker.value(fact)
        self.known[person, "name"], self.known[person, fact] = name, x
        self.last = person, fact
        named = Person(person.says + maker.rng.choice(forms).format(name), None)
        text, answer = self.fill(said, named, x=x), f"{self.recall(person, 'name')} {self.recall(person, fact)}"
        return text, REMEMBERED + answer, "tell"

    def told_of(self, person, fact, x):
        """
        A statement about another person. It has keywords among arbitrary words only if these cannot be mistaken: if
        the person and the value were both names, a reader could not tell which one is the value.
        """
        maker, is_clear = self.maker, person.says.startswith("my ") or fact in ("food", "job")
        return maker.key_of_others(fact) if is_clear and maker.stands_out(fact, x) else maker.of_others("tell", fact)

    def tell(self, person, fact):
        maker = self.maker
        others = [x for (_, other), x in self.known.items() if other == fact]
        x = maker.value_like(fact, maker.rng.choice(others)) if others else maker.value(fact)
        self.known[person, fact], self.last = x, (person, fact)
        said = maker.own_tell(fact) if person.is_user else self.told_of(person, fact, x)
        text, answer = self.fill(said, person, x=x), REMEMBERED + self.recall(person, fact)
        if maker.hard and maker.chance(.06):
            return maker.unclear(text, x), answer, "given"
        text = maker.said_loosely(text, x) if person.is_user or person.says.startswith("my ") else text
        return text, answer, "tell"

    def correct(self):
        """The user corrects the last statement. -> a turn"""
        maker, (person, fact) = self.maker, self.last
        old = self.known[person, fact]
        x = old
        while x == old:
            x = maker.value_like(fact, old)
        self.known[person, fact] = x
        text = maker.correction().format(x=x, old=old)
        text = text[0].lower() + text[1:] if maker.chance(.4) else text
        return text, CORRECTED + self.recall(person, fact), "tell"

    def ask(self, person, fact, kind):
        maker = self.maker
        if person.is_user:
            text = maker.asked_loosely(fact)
        else:
            text = maker.loosely(self.fill(maker.of_others("ask", fact), person))
        if (person, fact) in self.known:
            return maker.unclear_question(text, self.recall(person, fact), self.known[person, fact], kind)
        if person.is_user:
            answer = maker.not_told_own[fact]
        else:
            answer = self.fill(maker.phrases["other not told " + fact][0], person)
        return maker.unclear_question(text, answer, not_told_end(answer), kind)


def conversation(maker):
    """
    One to three people and perhaps the user, one or two facts of each, names, corrections, and questions in another
    order. The harder mixture often has the same fact of two to five people and asks for it repeatedly. So the model
    learns that the answer depends on the person, not on which value came last.
    """
    rng, people = maker.rng, People(maker)
    is_same = maker.hard and maker.chance(.4)
    persons = [people.person() for _ in range(rng.choice((2, 3, 3, 4) if is_same else (1, 2, 2, 2, 3)))]
    if maker.chance(.5):
        persons.append(USER)
    persons = list(dict.fromkeys(persons))
    facts = rng.sample(FACTS[1:], 1 if is_same else rng.choice((1, 1, 2)))
    told = [(person, fact) for person in persons for fact in facts]
    names = .1 if is_same else .5
    told += [(person, "name") for person in persons if "name" in people.facts_of(person) and maker.chance(names)]
    rng.shuffle(told)
    turns, corrected = [], set()
    for person, fact in told[:5]:
        if (person, fact) in people.known:  # a name that another statement has told already
            continue
        has_name = people.can_be_named(person, fact) and maker.chance(.35)
        turns.append(people.tell_with_name(person, fact) if has_name else people.tell(person, fact))
        if maker.chance(.3) and not has_name:  # after both, a correction could mean either
            turns.append(people.correct())
            corrected.add((person, fact))
        if maker.chance(.15):
            turns.append(maker.one_off())
    asked = list(people.known) * (2 if is_same else 1)
    rng.shuffle(asked)
    if maker.chance(.25):
        asked.insert(rng.randint(0, len(asked)), (rng.choice(persons), rng.choice(facts)))
    for person, fact in asked[:7 if is_same else 6]:
        turns.append(people.ask(person, fact, "correct" if (person, fact) in corrected else "people"))
        if maker.chance(.1):
            turns.append(maker.one_off())
    return turns


def correction(maker):
    """One statement of the user, its correction, and the question, at once or some turns later."""
    people, fact = People(maker), maker.rng.choice(FACTS)
    turns = [people.tell(USER, fact), people.correct()]
    if maker.chance(.2):
        turns.append(people.correct())
    turns += [maker.one_off() for _ in range(maker.rng.choice((0, 0, 1, 2, 4)))]
    return turns + [people.ask(USER, fact, "correct")]
