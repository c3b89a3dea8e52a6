"""Conversations about several people whose facts must not be mixed up, with corrections of the last statement."""
import re
from dataclasses import dataclass

import several
from phrase_files import filled, sentence_case

# An answer to a statement ends with the sentence that later answers the question for it, word by word. The answer to a
# question whose fact was not told begins with the same words ("Your name is something that you have not told me yet.").
# So the model finds a fact by the words of its own answers, and decides by them whether the fact was told.
REMEMBERED = "I will remember that. "
CORRECTED = "I see. "
FACTS = ("name", "home", "food", "job", "pet")
MORE_FACTS = ("hobby", "drink", "colour", "animal", "season", "number")  # of other people in the harder mixture only
# Each group has words for the same relation.
SAME = [group.split() for group in (
    "mother mum mom mama", "father dad papa", "grandmother grandma nan", "grandfather grandpa", "kid child",
    "roommate flatmate housemate", "colleague co-worker", "friend pal mate buddy", "brother bro", "sister sis",
    "girlfriend gf", "boyfriend bf", "husband hubby")]
MALE = frozenset("""brother|bro|bf|hubby|father|dad|husband|son|uncle|grandfather|nephew|grandpa|boyfriend|stepfather|
stepson|papa|landlord|father-in-law|brother-in-law|stepbrother|grandson|boy|twin brother|little brother|older brother|
half-brother|oldest son""".replace("\n", "").split("|"))
FEMALE = frozenset("""sister|sis|gf|mother|mum|wife|daughter|aunt|grandmother|niece|mom|grandma|girlfriend|stepmother|
godmother|mother-in-law|sister-in-law|ex-wife|great-aunt|stepsister|daughter-in-law|granddaughter|nan|landlady|girl|
mama|twin sister|big sister|younger sister|youngest daughter""".replace("\n", "").split("|"))
POSSESSIVE = {"he": "his", "she": "her"}


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


def with_pronoun(phrase, pronoun):
    """The phrase with "he" and "his" instead of the person, or None if that needs more than a replacement."""
    phrase = phrase.replace("{s}'s", POSSESSIVE[pronoun])
    before = re.findall(r"(\S*) ?{s}", phrase)
    allowed = " does did where what which that is has said say if Does Did Is".split(" ")
    return phrase.replace("{s}", pronoun) if all(word in allowed for word in before) else None


def relative(relation):
    return Person("my " + relation, "your " + relation)


def words_for(relation):
    """All words for this relation."""
    return next((group for group in SAME if relation in group), [relation])


class People:
    """
    Makes turns of one conversation. `maker` supplies phrasings and values of its part (training or held out). In the
    harder mixture the user also calls a person by another word for the relation ("mum", "mother"), by "he" or "she",
    or, once it is told, by the name. An answer calls a person as the user did last, but never by a pronoun.
    """

    def __init__(self, maker):
        self.maker, self.known = maker, {}
        self.last = None  # (person, fact, the person as the user called it) of the last statement
        self.relations = set()  # all words for the relations of this conversation
        self.mentioned = None  # (person, the person as the user called it) of the last message, if it is about one
        self.pronouns = {}  # of a person who may be "he" or "she"

    def relation(self):
        """A relation. In the harder mixture no other person of the conversation has it, nor another word for it."""
        maker = self.maker
        if not maker.hard:
            return maker.rng.choice(maker.phrases["relations"])
        while True:
            more = maker.chance(.45)
            relation = maker.also("more relations") if more else maker.rng.choice(maker.phrases["relations"])
            if relation not in self.relations:
                self.relations.update(words_for(relation))
                return relation

    def person(self):
        maker = self.maker
        if maker.chance(.55):
            return relative(self.relation())
        name = maker.value("name")
        return Person(name, name)

    def called(self, person, fact):
        """The person as the user calls it in a turn about this fact."""
        maker = self.maker
        if not maker.hard or person.is_user or not person.says.startswith("my "):
            return person
        name = self.known.get((person, "name"))
        if name and fact != "name" and maker.chance(.45):
            return Person(name, name)
        words = words_for(person.says.removeprefix("my "))
        return relative(maker.rng.choice(words)) if len(words) > 1 and maker.chance(.35) else person

    def facts_of(self, person):
        """A name that the user says instead of a relation has no other name."""
        facts = FACTS + MORE_FACTS if self.maker.hard else FACTS
        return facts if person.is_user or person.says.startswith("my ") else facts[1:]

    def pronoun(self, person):
        relation = person.says.removeprefix("my ")
        known = "he" if relation in MALE else "she" if relation in FEMALE else self.maker.rng.choice(("he", "she"))
        return self.pronouns.setdefault(person, known)

    def about_mentioned(self, section, person, fact):
        """A phrasing with "he" or "she", sometimes, if the last message was about this person; else None."""
        maker = self.maker
        is_same = self.mentioned and self.mentioned[0] == person
        if is_same and fact == "name" and not self.mentioned[1].says.startswith("my "):
            return None  # "His name" of Leo
        if maker.hard and is_same and maker.chance(.35):
            return with_pronoun(maker.of_others(section, fact), self.pronoun(person))
        return None

    def fill(self, phrase, person, **parts):
        """A value at the beginning keeps its case, so that the answer can repeat it."""
        text = filled(phrase, s=person.says, a=person.answer, **parts)
        return text if phrase.startswith("{x}") else sentence_case(text)

    def recall(self, person, fact, called=None):
        maker, x = self.maker, self.known[person, fact]
        phrase = maker.recall_own[fact] if person.is_user else maker.recall_other[fact]
        return self.fill(phrase, called or person, x=x)

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
        self.last, self.mentioned = (person, fact, person), (person, person)
        named = Person(person.says + maker.rng.choice(forms).format(name), None)
        text, answer = self.fill(said, named, x=x), f"{self.recall(person, 'name')} {self.recall(person, fact)}"
        return text, REMEMBERED + answer, "tell"

    def tell_together(self, persons):
        """
        One message with facts of one or two relations, which become persons of the conversation: "My wife Mia is a cook
        and my son Leo lives in Rome."
        """
        maker = self.maker
        is_name = maker.chance(.15)
        kept = maker.kept_of_others
        text = several.template(maker, "introduce" if is_name else "tell people", {**kept, "n": kept["name"]})
        values, answer, who = {}, [], {}
        places = several.PLACEHOLDER.findall(text)
        for mark in ("", "2"):
            if "r" + mark not in places:
                continue
            # "Mia is a cook" from "My {r} is a {job}"
            named, n = re.subn(rf"[Mm]y ({{r{mark}}})", r"\1", text)
            if n > 0 and "n" + mark not in places and maker.chance(.35):
                text, values["r" + mark] = named, maker.value("name")
                who[mark] = Person(values["r" + mark], values["r" + mark])
            else:
                values["r" + mark] = self.relation()
                who[mark] = relative(values["r" + mark])
            persons.append(who[mark])
        # The answer about a person begins with the name, even if the message names the relation after it.
        order = sorted(places, key=lambda place: (place[-1] == "2", place.rstrip("2") != "n"))
        for place in order:
            fact = {"n": "name"}.get(place.rstrip("2"), place.rstrip("2"))
            if fact != "r":
                person = who["2" if place[-1] == "2" else ""]
                values[place] = self.known[person, fact] = maker.value(fact)
                answer.append(self.recall(person, fact))
        self.mentioned = None if "r2" in places else (who[""], who[""])
        return several.message(maker, text, values), REMEMBERED + " ".join(answer), "tell"

    def who_is(self, person, kind):
        """A question for the relation of a person by the name."""
        maker, name, self.mentioned = self.maker, self.known[person, "name"], (person, person)
        text = sentence_case(maker.also("who is").replace("{n}", name))
        return maker.loosely(text, False), self.recall(person, "name"), kind

    def told_of(self, person, fact, x):
        """
        A statement about another person. It has keywords among arbitrary words only if these cannot be mistaken: if
        the person and the value were both names, a reader could not tell which one is the value.
        """
        maker, is_clear = self.maker, person.says.startswith("my ") or fact in ("food", "job")
        is_clear = is_clear and fact in FACTS and maker.stands_out(fact, x)
        return maker.key_of_others(fact) if is_clear else maker.of_others("tell", fact)

    def tell(self, person, fact):
        maker = self.maker
        others = [x for (_, other), x in self.known.items() if other == fact]
        x = maker.value_like(fact, maker.rng.choice(others)) if others else maker.value(fact)
        said = self.about_mentioned("tell", person, fact)
        called = self.mentioned[1] if said else self.called(person, fact)
        self.known[person, fact], self.last = x, (person, fact, called)
        said = said or (maker.own_tell(fact) if person.is_user else self.told_of(called, fact, x))
        text, answer = self.fill(said, called, x=x), REMEMBERED + self.recall(person, fact, called)
        self.mentioned = None if person.is_user else (person, called)
        if maker.hard and maker.chance(.02):
            self.mentioned = None
            return maker.unclear(text, x), answer, "given"
        text = maker.said_loosely(text, x) if person.is_user or called.says.startswith("my ") else text
        return text, answer, "tell"

    def correct(self):
        """The user corrects the last statement. -> a turn"""
        maker, (person, fact, called) = self.maker, self.last
        old = self.known[person, fact]
        x = old
        while x == old:
            x = maker.value_like(fact, old)
        self.known[person, fact] = x
        if maker.hard and person.is_user and fact != "home" and maker.chance(.15):
            return maker.negated(fact, old, x), CORRECTED + self.recall(person, fact, called), "tell"
        if maker.hard and maker.chance(.35):  # in a whole sentence: "Sorry, my aunt lives in Bern"
            said = maker.own_tell(fact) if person.is_user else self.told_of(called, fact, x)
            text = several.lowered(self.fill(said, called, x=x))
            return maker.rng.choice(maker.changes) + text, CORRECTED + self.recall(person, fact, called), "tell"
        text = maker.correction().format(x=x, old=old)
        text = text[0].lower() + text[1:] if maker.chance(.4) else text
        return text, CORRECTED + self.recall(person, fact, called), "tell"

    def change(self, person, fact):
        """
        A new value for a fact that was told some turns before, often without a word that says so. The user may call the
        person by another word than before. -> a turn
        """
        maker, (text, _, kind) = self.maker, self.tell(person, fact)
        if kind == "tell" and maker.chance(.5):
            x = self.known[person, fact]
            text = maker.rng.choice(maker.changes) + (text if text.startswith(x) else several.lowered(text))
        return text, CORRECTED + self.recall(person, fact, self.last[2]), kind

    def ask(self, person, fact, kind):
        maker, is_told = self.maker, (person, fact) in self.known
        if maker.hard and fact == "name" and is_told and not person.is_user and maker.chance(.2):
            return self.who_is(person, kind)
        phrase = self.about_mentioned("ask", person, fact)
        called = self.mentioned[1] if phrase else self.called(person, fact)
        if person.is_user:
            text = maker.asked_loosely(fact)
        else:
            text = maker.loosely(self.fill(phrase or maker.of_others("ask", fact), called))
        self.mentioned = None if person.is_user else (person, called)
        if is_told:
            return maker.unclear_question(text, self.recall(person, fact, called), self.known[person, fact], kind)
        if person.is_user:
            answer = maker.not_told_own[fact]
        else:
            answer = self.fill(maker.not_told_other[fact], called)
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
    pool = FACTS[1:] + MORE_FACTS if maker.hard and maker.chance(.4) else FACTS[1:]
    facts = rng.sample(pool, 1 if is_same else rng.choice((1, 1, 2)))
    turns, corrected, statement = [], set(), None
    together = []  # the persons of a message that tells several facts
    if maker.hard and maker.chance(.45):
        turns.append(people.tell_together(together))
    told = [(person, fact) for person in persons for fact in facts]
    if maker.chance(.6):
        told += [(person, fact) for person in together for fact in facts]
    names = .1 if is_same else .5
    told += [(person, "name") for person in persons if "name" in people.facts_of(person) and maker.chance(names)]
    rng.shuffle(told)
    if maker.hard and maker.chance(.4):  # names first, so that the other facts can be told of "Leo" or "my brother"
        told.sort(key=lambda one: one[1] != "name")
    persons += together
    for person, fact in told[:5]:
        if (person, fact) in people.known:  # a name that another statement has told already
            continue
        has_name = people.can_be_named(person, fact) and maker.chance(.35)
        turn = people.tell_with_name(person, fact) if has_name else people.tell(person, fact)
        is_joined = maker.hard and statement and turns[-1] is statement and maker.chance(.4)
        if is_joined:
            turn = several.joined(maker, turns.pop(), turn, REMEMBERED)
        turns.append(turn)
        statement = None if is_joined else turn
        if maker.chance(.3) and not has_name and not is_joined:  # of two facts, a correction could mean either
            turns.append(people.correct())
            corrected.add((person, fact))
        if maker.chance(.15):
            turns.append(maker.one_off())
            people.mentioned = None
    if maker.hard and maker.chance(.2):
        person, fact = rng.choice(list(people.known))
        turns.append(people.change(person, fact))
        corrected.add((person, fact))
    asked = list(people.known) * (2 if is_same else 1)
    rng.shuffle(asked)
    if maker.chance(.25):
        asked.insert(rng.randint(0, len(asked)), (rng.choice(persons), rng.choice(facts)))
    if maker.hard and maker.chance(.6):  # a fact that was not told, of a person of whom others were
        person = rng.choice(list(people.known))[0]
        fact = rng.choice(people.facts_of(person))
        if (person, fact) not in people.known:
            asked.insert(rng.randint(0, min(3, len(asked))), (person, fact))
    for person, fact in asked[:7 if is_same else 6]:
        turns.append(people.ask(person, fact, "correct" if (person, fact) in corrected else "people"))
        if maker.chance(.1):
            turns.append(maker.one_off())
            people.mentioned = None
        if maker.hard and maker.chance(.02):
            turns.append(maker.stranger())
            people.mentioned = None
    return turns


def correction(maker):
    """One statement of the user, its correction, and the question, at once or some turns later."""
    people, fact = People(maker), maker.rng.choice(FACTS)
    turns = [people.tell(USER, fact), people.correct()]
    if maker.chance(.2):
        turns.append(people.correct())
    turns += [maker.one_off() for _ in range(maker.rng.choice((0, 0, 1, 2, 4)))]
    return turns + [people.ask(USER, fact, "correct")]
