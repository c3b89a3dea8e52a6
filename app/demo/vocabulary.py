"""The demo model's vocabulary: byte-level BPE made from its own corpus, and the ids the engine gives.

Digits never merge, so that sums are done digit by digit, and the words to be spelled are kept out of the
text that merges are learned from, so that they stay in short pieces. The prompt is tokenised as the
engine does it: the template's text joined with the user's words, each answer by itself.
"""
import json

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def splitter(digits):
    """digits: how many go into one piece; one while merges are learned."""
    pattern = LLAMA3.replace("{1,3}", "") if digits == 1 else LLAMA3
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def learn(texts, n_vocab):
    """-> (tokens in the byte alphabet, merges): bytes first, merged tokens, specials last."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = splitter(1)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=n_vocab - len(SPECIAL), initial_alphabet=alphabet, show_progress=False)
    tok.train_from_iterator(texts, trainer)
    state = json.loads(tok.to_str())["model"]
    tokens = [t for t, _ in sorted(state["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["merges"]]
    return tokens + SPECIAL, merges


class Vocabulary:
    def __init__(self, tokens, merges):
        self.tokens, self.merges = tokens, merges
        plain = {t: i for i, t in enumerate(tokens[:-len(SPECIAL)])}
        self.tok = Tokenizer(models.BPE(vocab=plain, merges=[tuple(m.split(" ")) for m in merges]))
        self.tok.pre_tokenizer = splitter(3)
        self.bos, self.eos, self.eot = (tokens.index(s) for s in SPECIAL)

    def ids(self, text):
        return self.tok.encode(text).ids

    def conversation(self, turns, system=None):
        """-> (ids, weight of each id as a target): answers and their end of turn are what is learned."""
        ids, weights = [self.bos], [0.0]

        def add(new, weight):
            ids.extend(new)
            weights.extend([weight] * len(new))

        if system:
            add(self.ids("System: " + system) + [self.eot], 0.0)
        for user, answer in turns:
            add(self.ids("User: " + user.strip()) + [self.eot], 0.05)
            add(self.ids("Assistant: "), 0.0)
            if answer is not None:
                add(self.ids(answer) + [self.eot], 1.0)
        return ids, weights

    def text(self, ids):
        table = {c: b for b, c in byte_alphabet().items()}
        data = bytes(table[c] for i in ids if i < len(self.tokens) - len(SPECIAL) for c in self.tokens[i])
        return data.decode("utf-8", "replace")


def byte_alphabet():
    """byte -> its printable stand-in, as byte-level BPE files write it."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {b: chr(b) for b in plain}
    for n, b in enumerate(b for b in range(256) if b not in table):
        table[b] = chr(256 + n)
    return table
