"""The demo model's vocabulary: byte-level BPE learned from its corpus, with the same ids as in the engine.

Merges extend the beginning of a word only. A common word is one token; the rest of a rare word, a word in quotes and
the digits of a number are single letters. So the model sees text that it must copy, spell, reverse or add letter by
letter. A prompt is tokenised as in the engine: the template's text together with the user's text, each answer alone.
"""
import collections
import json

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def splitter():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def may_begin(token):
    """Whether a merge may start with this token: the space or the capital at the beginning of a word."""
    return token[0] == byte_alphabet()[ord(" ")] or "A" <= token[0] <= "Z"


def learn(texts, n_vocab):
    """-> (tokens in the byte alphabet, merges). Order: bytes, merged tokens, special tokens."""
    split, counts = splitter(), collections.Counter()
    for text in texts:
        counts.update(piece for piece, _ in split.pre_tokenize_str(text))
    # Only the first two tokens of a word can merge. {these two tokens: {word: number of occurrences}}
    waiting = collections.defaultdict(collections.Counter)
    for piece, n in counts.items():
        if len(piece) > 1 and may_begin(piece) and piece[1].isalpha():
            waiting[piece[0], piece[1]][piece] += n
    tokens, merges = sorted(byte_alphabet().values()), []
    while len(tokens) < n_vocab - len(SPECIAL):
        a, b = max(waiting, key=lambda pair: (waiting[pair].total(), pair))
        tokens.append(a + b)
        merges.append(f"{a} {b}")
        for piece, n in waiting.pop((a, b)).items():
            if len(piece) > len(a + b):
                waiting[a + b, piece[len(a + b)]][piece] += n
    return tokens + SPECIAL, merges


class Vocabulary:
    def __init__(self, tokens, merges):
        self.tokens, self.merges = tokens, merges
        plain = {t: i for i, t in enumerate(tokens[:-len(SPECIAL)])}
        self.tok = Tokenizer(models.BPE(vocab=plain, merges=[tuple(m.split(" ")) for m in merges]))
        self.tok.pre_tokenizer = splitter()
        self.bos, self.eos, self.eot = (tokens.index(s) for s in SPECIAL)

    def pieces(self):
        """
        The tokens that begin words, without their leading space. Tokens that begin with a capital instead begin words
        after other characters, such as a quotation mark.
        """
        space, plain = byte_alphabet()[ord(" ")], self.tokens[:-len(SPECIAL)]
        return sorted({t[1:] for t in plain if t[0] == space and t[1:].isalpha()}
                      | {t for t in plain if "A" <= t[0] <= "Z"})

    def ids(self, text):
        return self.tok.encode(text).ids

    def conversation(self, turns, system=None):
        """
        turns: (user text, answer or None, number of characters of the answer that training does not learn).
        -> (ids, weight of each id as a target). What is learned of an answer has full weight. Its end of turn is
        learned unless the whole answer is not.
        """
        ids, weights = [self.bos], [0.0]

        def add(new, weight):
            ids.extend(new)
            weights.extend([weight] * len(new))

        if system:
            add(self.ids("System: " + system) + [self.eot], 0.0)
        for user, answer, n_given in turns:
            add(self.ids("User: " + user.strip()) + [self.eot], 0.05)
            add(self.ids("Assistant: "), 0.0)
            if answer is not None:
                given = self.ids(answer[:n_given].rstrip())
                add(given, 0.0)
                add((self.ids(answer) + [self.eot])[len(given):], float(n_given < len(answer)))
        return ids, weights

    def text(self, ids):
        table = {c: b for b, c in byte_alphabet().items()}
        data = bytes(table[c] for i in ids if i < len(self.tokens) - len(SPECIAL) for c in self.tokens[i])
        return data.decode("utf-8", "replace")


def read_vocabulary(path):
    with open(path, encoding="utf-8") as f:
        return Vocabulary(**json.load(f))


def byte_alphabet():
    """{byte: its printable character in byte-level BPE files}"""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {b: chr(b) for b in plain}
    for n, b in enumerate(b for b in range(256) if b not in table):
        table[b] = chr(256 + n)
    return table
