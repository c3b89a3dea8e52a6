#!/usr/bin/env python3
"""
test_demo_corpus.py CHAT MAKE_MODEL DEMO: the corpus of the built-in model against the program, and its held-out part
against its training part. DEMO is the folder app/demo.
"""
import collections
import os
import random
import re
import sys

from support.program_case import PROGRAM, ProgramCase, main

DEMO = sys.argv[3]
del sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, DEMO)
import corpus  # noqa: E402 (needs the path above)
import keywords  # noqa: E402
import names  # noqa: E402
import phrase_files  # noqa: E402
import program  # noqa: E402
import questions  # noqa: E402
import several  # noqa: E402
import sums  # noqa: E402

ANSWERS = [answer for _, answer in corpus.TOPICS] + list(corpus.ANSWERS.values())
KEY = re.compile(r'\b(?:Ctrl|Alt)-[A-Z]\w*|\bF\d+\b|\bPg(?:Up|Dn)\b')


class AgainstTheProgram(ProgramCase):
    def test_the_recorded_table_is_that_of_the_program(self):
        with open(os.path.join(DEMO, 'program.txt'), encoding='utf-8') as file:
            self.assertEqual(file.read(), program.listing(PROGRAM), 'program.py says what to do')

    def test_every_command_key_and_option_has_an_answer(self):
        briefs, options = program.recorded()
        named = {name for topic, _ in corpus.TOPICS for name in topic}
        self.assertGreater(len(briefs), 40)
        self.assertGreater(len(options), 60)
        self.assertEqual([name for name in [*briefs, *options] if name not in named], [])

    def test_every_command_and_most_keys_can_be_found_by_what_they_are_for(self):
        wanted = {topic[0] for topic, _ in corpus.ACTION_TOPICS}
        self.assertEqual([name for name in program.commands(PROGRAM) if name not in wanted], [])

    def test_answers_name_only_what_the_program_has(self):
        briefs, options = program.recorded()
        for answer in ANSWERS:
            self.assertEqual(set(re.findall(r'(?<![\w/.])/[a-z]{2,}', answer)) - set(briefs), set(), answer)
            self.assertEqual(set(re.findall(r'--[a-z][a-z-]+', answer)) - set(options), set(), answer)
            for key in KEY.findall(answer):
                self.assertTrue(any(key in known for known in briefs), (key, answer))
            self.assertNotIn('{', answer)

    def test_the_answer_about_a_command_names_it(self):
        for topic, answer in corpus.TOPICS:
            if topic[0].startswith('/'):
                self.assertTrue(answer.startswith(f'Type {topic[0]} '), answer)


class TrainingAndHeldOut(ProgramCase):
    SEVERAL = {'tell several': set(corpus.KINDS), 'tell people': set(), 'introduce': {'r', 'n'}, 'who is': {'n'}}

    def setUp(self):
        super().setUp()
        maker = corpus.Maker('train', random.Random(3), hard=True)
        self.turns = [turn for _ in range(400) for turn in maker.conversation()]

    def test_training_has_no_held_out_name_or_word(self):
        texts = [user + ' ' + ('' if kind == 'word' else answer)  # a word backwards may be a name
                 for user, answer, kind in self.turns]
        words = {names.plain(word) for text in texts for word in re.findall(r"[^\W\d_]+", text)}
        also = {names.plain(word) for phrases in [*corpus.ALSO.values(), *corpus.TEMPLATES.values()]
                for phrase in phrases for word in re.findall(r"[^\W\d_]+", phrase)}
        self.assertEqual((words | also) & names.HELD_SET, set())
        self.assertEqual(corpus.LEXICON & names.HELD_SET, set())

    def test_every_byte_of_the_held_out_names_is_frequent_in_training(self):
        """A letter outside ASCII is a token for each of its bytes. A token that training lacks cannot be copied."""
        rng, counts = random.Random(7), collections.Counter()
        for _ in range(20000):
            counts.update(names.name(rng).encode())
        rare = {byte: counts[byte] for byte in ''.join(names.HELD_NAMES).encode() if counts[byte] < 20}
        self.assertEqual(rare, {})

    def test_no_text_is_empty_or_unfinished(self):
        for user, answer, _ in self.turns:
            self.assertTrue(user.strip() and answer.strip(), (user, answer))
            self.assertNotRegex(user + answer, r"[{}]|,'s|,\.")

    def test_a_question_has_one_answer(self):
        """Of the phrasings without a placeholder, no two sections with different answers contain the same one."""
        answers, rng = {}, random.Random(18)
        sections = [(section, answer, corpus.PHRASES[section] + corpus.ALSO.get(section, [])
                     + [phrase_files.expanded(template, rng) for template in 20 * corpus.TEMPLATES.get(section, [])])
                    for section, answer in corpus.ANSWERS.items() if section in corpus.PHRASES]
        for section, answer, phrases in sections:
            for phrase in phrases:
                bare = corpus.bare_words(phrase)
                self.assertEqual(answers.setdefault(bare, answer) if bare else answer, answer, (section, phrase))

    def test_templates_are_well_formed(self):
        """Each is of a section that also.txt has, and has its placeholders exactly once in every expansion."""
        rng = random.Random(17)
        for section, templates in corpus.TEMPLATES.items():
            self.assertIn(section, corpus.ALSO)
            if section in self.SEVERAL:
                continue
            known = set(re.findall(r'{\w+}', ' '.join(corpus.ALSO[section])))
            optional = {'{x}'} if section == 'decline' else set()
            for template in templates:
                self.assertEqual(re.sub(r'\([^()]*/[^()]*\)', '', template).count('('), 0, template)
                for _ in range(5):
                    text = phrase_files.expanded(template, rng)
                    # In a phrasing, "=" begins the answer of a section (phrase_files.py); sums have it inside.
                    self.assertNotRegex(text, r'[()|]|^=|  |^ | $' if section in ('add', 'subtract')
                                        else r'[()|=]|  |^ | $')
                    found = re.findall(r'{\w+}', text)
                    self.assertEqual(set(found) - known - optional, set(), template)
                    self.assertEqual(found.count('{x}'), '{x}' in known or '{x}' in found, template)
                    self.assertGreaterEqual(found.count('{s}'), '{s}' in known, template)

    def test_templates_of_several_facts_name_each_of_them_once(self):
        rng = random.Random(20)
        people = {fact + mark for fact in ('r', 'n', *corpus.people.FACTS) for mark in ('', '2')}
        for section, places in self.SEVERAL.items():
            known = places or people
            for template in corpus.TEMPLATES[section] + corpus.ALSO[section]:
                found = several.PLACEHOLDER.findall(phrase_files.expanded(template, rng))
                self.assertEqual(len(found), len(set(found)), template)
                self.assertEqual(set(found) - known, set(), template)
                self.assertGreater(len(found), section != 'who is', template)
                if section == 'tell people':
                    self.assertIn('r', found, template)
                    self.assertEqual('r2' in found, any(place[-1] == '2' for place in found), template)

    def test_a_message_of_several_facts_contains_what_its_answer_says(self):
        maker = corpus.Maker('train', random.Random(21), hard=True)
        for _ in range(300):
            known = {}
            text, kinds = several.own_facts(maker, known)
            self.assertEqual(sorted(kinds), sorted(known))
            self.assertEqual([x for x in known.values() if x not in text], [], text)
            people = corpus.people.People(maker)
            text, answer, _ = people.tell_together([])
            for (person, fact), x in people.known.items():
                self.assertIn(x, text)
                self.assertIn(people.recall(person, fact), answer)

    def test_a_person_may_be_asked_for_by_the_name_or_another_word(self):
        maker, asked = corpus.Maker('train', random.Random(22), hard=True), set()
        people = corpus.people.People(maker)
        mum = corpus.people.relative('mum')
        people.known[mum, 'name'], people.known[mum, 'home'] = 'Zülma', 'Krorg'
        for _ in range(300):
            text, answer, _ = people.ask(mum, 'home', 'people')
            asked.add(answer)
        called = ('Your mum', 'Your mother', 'Your mom', 'Your mama', 'Zülma')
        self.assertEqual(asked, {f'{who} lives in Krorg.' for who in called})
        self.assertIn('Your mum is called Zülma.', {people.ask(mum, 'name', 'people')[1] for _ in range(50)})

    def test_a_pronoun_stands_for_the_person_of_the_message_before(self):
        people = corpus.people
        self.assertEqual(people.with_pronoun("Where does {s} live?", 'she'), 'Where does she live?')
        self.assertEqual(people.with_pronoun("{s}'s home is {x}.", 'he'), 'his home is {x}.')
        self.assertIsNone(people.with_pronoun('The home of {s} is {x}.', 'he'))
        maker, said = corpus.Maker('train', random.Random(26), hard=True), set()
        for _ in range(200):
            talk = people.People(maker)
            aunt, dad = people.relative('aunt'), people.relative('dad')
            talk.tell(aunt, 'food')
            talk.tell(aunt, 'home')
            talk.tell(dad, 'job')
            text, answer, _ = talk.ask(aunt, 'home', 'people')  # the last message was about the father
            self.assertNotRegex(text.lower(), r'\b(he|she|his|her)\b')
            text, answer, _ = talk.ask(aunt, 'food', 'people')
            found = re.search(r'\b(he|she|his|her)\b', text.lower())
            if found:
                said.add(found[0])
                self.assertTrue(answer.startswith('Your aunt likes '), answer)
        self.assertEqual(said & {'he', 'his'}, set())
        self.assertIn('she', said)

    def test_training_asks_what_the_answers_suggest(self):
        """An answer may end with "ask me, for example, how to save a chat". Then a user does exactly that."""
        answers = list(corpus.ANSWERS.values()) + [answer for _, answer in corpus.TOPICS]
        suggested = {words for answer in answers
                     for words in re.findall(r'ask me(?:, for example,)? ((?:how|where) to [^.;:,]*)', answer)}
        asked = {corpus.bare_words(name) for names, _ in corpus.TOPICS for name in names if name[0] == '?'}
        asked |= {corpus.bare_words(phrase) for phrase in corpus.ALSO['model']}
        self.assertEqual({'how to save a chat', 'where to get a bigger model'}, suggested)
        self.assertEqual(suggested - asked, set())

    def test_the_commonest_phrasings_are_not_rare(self):
        maker, people = corpus.Maker('train', random.Random(28), hard=True), corpus.people
        said, n = collections.Counter(), 600
        for _ in range(n):
            talk, aunt = people.People(maker), people.relative('aunt')
            talk.tell(aunt, 'home')
            said.update(re.findall(r'^(?:she|my aunt) is an? \w+[.!]?$', talk.tell(aunt, 'job')[0].lower()))
            said.update(re.findall(r'^what does (?:she|my aunt) do\b', talk.ask(aunt, 'job', 'people')[0].lower()))
        self.assertGreater(sum(count for text, count in said.items() if text.startswith('what')), n / 25)
        self.assertGreater(sum(count for text, count in said.items() if ' is a' in text), n / 25)
        self.assertIn("My number isn't 77, it's 78", {maker.negated('number', '77', '78') for _ in range(100)})

    def test_all_kinds_of_facts_can_be_told_of_other_people(self):
        maker, own = corpus.Maker('train', random.Random(27), hard=True), {'i', 'me', 'we', 'us', 'our', "i'm"}
        for fact in corpus.people.MORE_FACTS:
            templates = corpus.TEMPLATES['other core ' + fact] + corpus.TEMPLATES['other direct ' + fact]
            self.assertGreater(len(templates), 30, fact)
            for template in templates:
                self.assertEqual(template.count('{s}'), 1, template)
                self.assertEqual(set(corpus.bare_words(template).split()) & own, set(), template)
            talk = corpus.people.People(maker)
            aunt = corpus.people.relative('aunt')
            told = talk.tell(aunt, fact)[1].removeprefix('I will remember that. ')
            self.assertTrue(told.startswith("Your aunt's "), told)
            self.assertEqual(talk.ask(aunt, fact, 'people')[1], told)
        asked = talk.ask(corpus.people.relative('boss'), 'hobby', 'people')[1]
        self.assertEqual(asked, "Your boss's hobby is something that you have not told me yet.")

    def test_a_changed_fact_is_not_remembered_as_a_new_one(self):
        maker, known = corpus.Maker('train', random.Random(28), hard=True), {}
        first, second = (maker.tell(known, 'home')[1] for _ in range(2))
        self.assertTrue(first.startswith('I will remember that. You live in '), first)
        self.assertTrue(second.startswith('I see. You live in '), second)

    def test_two_words_for_the_same_relation_are_not_two_people(self):
        maker = corpus.Maker('train', random.Random(23), hard=True)
        for _ in range(300):
            people = corpus.people.People(maker)
            groups = [tuple(corpus.people.words_for(people.relation())) for _ in range(5)]
            self.assertEqual(len(groups), len(set(groups)))

    def test_the_article_fits_the_word_after_it(self):
        self.assertEqual(phrase_files.filled('As a {x} or A {y}, a {z}.', x='editor', y='Ökonom', z='nurse'),
                         'As an editor or An Ökonom, a nurse.')
        self.assertEqual(phrase_files.filled('Spa {x}: {x}, {n}', x='editor', n=8), 'Spa editor: editor, 8')

    def test_what_somebody_likes_says_its_kind_by_itself(self):
        maker, said = corpus.Maker('train', random.Random(24), hard=True), set()
        for kind, x in (('drink', 'coffee'), ('drink', 'green tea'), ('hobby', 'bird watching'), ('food', 'chicken'),
                        ('food', 'fried rice'), ('drink', 'Hot chocolate'), ('food', 'hot chocolate'),
                        ('drink', 'espresso'), ('hobby', 'stone watching')):
            said.add((x, maker.says_kind(kind, x)))
        self.assertEqual(said, {('coffee', True), ('green tea', True), ('bird watching', True), ('chicken', False),
                                ('fried rice', True), ('Hot chocolate', True), ('hot chocolate', False),
                                ('espresso', True), ('stone watching', False)})
        self.assertIn('I like coffee.', {maker.telling('drink', 'coffee') for _ in range(2000)})

    def test_longer_values_contain_no_held_out_word(self):
        maker = corpus.Maker('train', random.Random(25), hard=True)
        for kind in corpus.VALUES:
            values = [maker.longer_value(kind) for _ in range(300)]
            self.assertGreater(sum(' ' in value for value in values), 100, kind)
            words = {word for value in values for word in value.replace(',', '').split()}
            self.assertEqual([word for word in words if '{' in word or maker.is_kept(word)], [])

    def test_a_name_beside_a_fact_is_kept_with_it(self):
        maker = corpus.Maker('train', random.Random(12), hard=True)
        for _ in range(200):
            people = corpus.people.People(maker)
            person = corpus.people.Person('my brother', 'your brother')
            text, answer, _ = people.tell_with_name(person, 'job')
            name, job = people.known[person, 'name'], people.known[person, 'job']
            self.assertIn(name, text)
            self.assertRegex(answer, rf'^I will remember that\. Your brother is called {re.escape(name)}\. '
                                     rf'Your brother works as an? {re.escape(job)}\.$')

    def test_similar_values_are_other_values(self):
        maker = corpus.Maker('train', random.Random(13), hard=True)
        values = [maker.value_like('name', 'Harold') for _ in range(400)]
        self.assertGreater(sum(value.startswith('Ha') for value in values), 30)
        self.assertLess(values.count('Harold'), 2)

    def test_kinds_that_the_model_cannot_remember_are_declined(self):
        maker = corpus.Maker('train', random.Random(14), hard=True)
        for make, reasons in ((corpus.declined.other_kind, {'remember', 'keep'}),
                              (corpus.declined.too_large, {'calculate'})):
            made = [make(maker) for _ in range(300)]
            self.assertEqual({reason for _, reason in made}, reasons)
            self.assertGreater(len({text for text, _ in made}), 150)

    def test_training_has_no_held_out_statement(self):
        for kind in corpus.KINDS:
            trained = set(corpus.bare_phrases(corpus.TELL[kind] + corpus.TELL_MORE[kind]))
            kept = corpus.PHRASES.get('tell new ' + kind, []) + corpus.KEPT['tell ' + kind]
            self.assertEqual(trained & set(corpus.bare_phrases(kept)), set())

    def test_composed_statements_contain_no_held_out_one(self):
        maker, heard = corpus.Maker('train', random.Random(8), hard=True), set()
        for kind in corpus.KINDS:
            kept = corpus.held_statements(kind)
            self.assertGreater(len(kept), 1)
            for _ in range(300):
                text = maker.composed(kind, kept)
                heard.add(text)
                for one in kept:
                    self.assertNotIn(f' {one} ', f" {corpus.bare_words(text.format(x='xx'))} ")
        self.assertGreater(len(heard), 2500)

    def test_an_adverb_before_a_value_is_no_part_of_the_answer(self):
        adverbs = corpus.ALSO['adverbs']
        maker, n = corpus.Maker('train', random.Random(4), hard=True), 0
        for _ in range(3000):
            for user, answer, kind in maker.conversation():
                value = answer.rstrip('.').split()[-1]
                found = [a for a in adverbs if kind == 'tell' and f' {a} {value}' in user]
                n += len(found)
                self.assertFalse([a for a in found if f' {a} {value}' in answer], (user, answer))
        self.assertGreater(n, 100)

    def test_statements_of_keywords_contain_no_held_out_one(self):
        maker, heard = corpus.Maker('train', random.Random(15), hard=True), set()
        sections = [('said ' + kind, corpus.held_statements(kind)) for kind in corpus.KINDS]
        sections += [('other said ' + fact, corpus.held_of_others('tell', fact)) for fact in corpus.people.FACTS]
        for section, kept in sections:
            for _ in range(100):
                text = keywords.key_statement(maker, corpus.ALSO[section], kept, ('{x}',))
                self.assertEqual(text.count('{x}'), 1)
                self.assertEqual('{s}' in text, section.startswith('other '))
                bare = f" {corpus.bare_words(text.format(x='xx', s='ss'))} "
                self.assertEqual([one for one in kept if f' {one} ' in bare], [])
                heard.add(text)
        self.assertGreater(len(heard), 1500)

    def test_common_words_are_no_values(self):
        maker = corpus.Maker('train', random.Random(16), hard=True)
        words = {maker.new_word(is_name).lower() for is_name in (True, False) for _ in range(3000)}
        self.assertEqual(words & keywords.NOT_VALUES, set())

    def test_questions_and_corrections_about_others_are_not_held_out_ones(self):
        maker = corpus.Maker('train', random.Random(9), hard=True)
        held = corpus.pick_phrases(corpus.PHRASES['correct'], True, 'correct') + corpus.KEPT['correct']
        said = {maker.correction() for _ in range(2000)}
        self.assertEqual(set(corpus.bare_phrases(said)) & set(corpus.bare_phrases(held)), set())
        for fact in corpus.people.FACTS:
            for section in ('ask', 'tell'):
                kept = corpus.held_of_others(section, fact)
                self.assertGreater(len(kept), 0)
                said = {corpus.bare_phrases([maker.of_others(section, fact)])[0] for _ in range(400)}
                self.assertGreater(len(said), 40)
                self.assertEqual(said & set(kept), set())

    def test_questions_about_the_user_are_not_held_out_ones(self):
        maker, kept = corpus.Maker('train', random.Random(10), hard=True), corpus.held_questions()
        asked = {corpus.bare_words(maker.asked_loosely(kind)) for kind in corpus.KINDS for _ in range(600)}
        self.assertGreater(len(asked), 1500)
        self.assertEqual(asked & kept, set())

    def test_more_questions_of_newcomers_are_not_held_out_ones(self):
        for section in corpus.NEWCOMERS:
            asked = corpus.PHRASES[section]
            held = {corpus.bare_words(question) or question for question in asked[3::4] + corpus.KEPT[section]}
            self.assertEqual({corpus.bare_words(question) or question for i, question in enumerate(asked) if i % 4 != 3}
                             & held, set(), section)
            more = {corpus.bare_words(question) or question for question in corpus.ALSO[section]}
            self.assertGreater(len(more), 6)
            self.assertEqual(more & held, set(), section)
        maker = corpus.Maker('train', random.Random(19), hard=True)
        asked = {corpus.bare_words(maker.newcomer()[0]) for _ in range(5000)}
        self.assertEqual(asked & corpus.NEWCOMERS_HELD, set())

    def test_more_questions_are_not_held_out_ones(self):
        for section in ('add', 'subtract', 'decline'):
            trained = corpus.ALSO[section] + corpus.PHRASES.get(section, []) + corpus.PHRASES['anything']
            kept = {corpus.bare_words(p) for p in corpus.KEPT[section]}
            self.assertGreater(len(kept), 2)
            self.assertEqual({corpus.bare_words(p) for p in trained} & kept, set(), section)

    def test_declined_questions_have_no_answer_among_the_facts(self):
        maker = corpus.Maker('train', random.Random(11))
        known = {corpus.bare_words(corpus.facts.some_fact(maker)[0]) for _ in range(20000)}
        declined = {corpus.bare_words(p) for p in corpus.ALSO['decline'] + corpus.KEPT['decline']}
        self.assertGreater(len(known), 900)
        self.assertEqual(known & declined, set())

    def test_held_out_sums_are_not_in_training(self):
        held = corpus.Maker('held', random.Random(4))
        for maker, is_held in ((held, True), (corpus.Maker('train', random.Random(4)), False)):
            for _ in range(200):
                _, answer, _ = maker.sum()
                a, b = map(int, re.search(r'(\d+) [+-] (\d+) = -?\d+\.$', answer).groups())
                self.assertEqual(sums.operands_held(a, b), is_held)

    def test_sums_of_equal_numbers_are_in_both_parts(self):
        held = [n for n in range(sums.TOP + 1) if sums.operands_held(n, n)]
        self.assertTrue(0 < len(held) < sums.TOP / 4, len(held))

    def test_an_addition_names_the_numbers_in_the_order_of_its_answer(self):
        for section in ('add', 'add tight', 'add words'):
            for phrasings in (corpus.PHRASES, corpus.ALSO, corpus.KEPT):
                for phrasing in phrasings.get(section, []):
                    self.assertLess(phrasing.index('{a}'), phrasing.index('{b}'), phrasing)

    def test_every_step_of_a_sum_is_true(self):
        rng = random.Random(5)
        for _ in range(3000):
            a, b = rng.randint(0, 999), rng.randint(0, 999)
            for answer, result in ((sums.added(a, b), a + b), (sums.subtracted(a, b), a - b)):
                self.assertTrue(answer.endswith(f' = {result}.'), answer)
                for left, right in re.findall(r'(\d+(?: [+-] \d+)+) = (-?\d+)', answer):
                    total = sum(int(n) for n in re.sub(r' - ', ' -', left).replace(' + ', ' ').split())
                    self.assertEqual(total, int(right), answer)

    def test_numbers_in_words(self):
        self.assertEqual([sums.in_words(n) for n in (0, 13, 20, 42, 100, 345)],
                         ['zero', 'thirteen', 'twenty', 'forty-two', 'one hundred',
                          'three hundred and forty-five'])

    def test_each_name_question_repeats_the_word(self):
        talks = list(questions.name_questions(30, 15))
        self.assertEqual(len(talks), 45)
        for turns in talks:
            self.assertEqual([kind[-1] for _, _, kind in turns if kind != 'between'], ['0', '1', '5'])
            self.assertIn(turns[0][1], turns[0][0])
            self.assertIn(turns[0][1], turns[1][1])
            self.assertEqual(turns[1][1], turns[5][1])

    def test_facts_of_people_are_the_last_that_were_told(self):
        """Each answer about a person repeats a value of the statement or correction before it."""
        maker = corpus.Maker('train', random.Random(6), hard=True)
        for _ in range(300):
            turns = corpus.people.conversation(maker)
            for i, (_, answer, kind) in enumerate(turns):
                if kind in ('people', 'correct') and 'that you have not told me' not in answer:
                    value = answer.rstrip('.').split(' ')[-1]
                    said = ' '.join(user for user, _, about in turns[:i] if about in ('tell', 'given'))
                    self.assertIn(value.lower(), said.lower())

    def test_a_fact_is_answered_with_words_that_the_model_has_said(self):
        """
        An answer about a fact that was told stands word by word at the end of an earlier answer, and one about another
        fact begins with the same words.
        """
        maker, told = corpus.Maker('train', random.Random(9), hard=True), 0
        for _ in range(1500):
            said = []
            for _, answer, kind in maker.conversation():
                for one in re.findall(r'(?:You|Your) [^.]*\.', answer) if kind == 'memory' else []:
                    if one.endswith('that you have not told me yet.'):
                        begin = re.match(r'.*?(?= (?:something|a place) that)', one)[0]
                        self.assertTrue(any(recall.startswith(begin) for recall in corpus.RECALL.values()), one)
                    elif one != corpus.NOTHING_TOLD:
                        self.assertTrue(any(one in earlier for earlier in said), (one, said))
                        told += 1
                said.append(answer)
        self.assertGreater(told, 300)


if __name__ == '__main__':
    main()
