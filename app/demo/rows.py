"""Rows of training ids, made by worker processes from the corpus while the training runs.

A row has SEQUENCE ids of several conversations, which do not attend to each other. Rows are made in shards. A shard
depends only on the seed, its number and its mixture. So a training that was stopped continues with the same rows, if
its length is given in tokens.
"""
import collections
import multiprocessing
import os
import random

import numpy as np

import corpus
from vocabulary import read_vocabulary

SYSTEMS = ["You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.", "Be kind.",
           "You are bitnet-chat."]
SEQUENCE = 512
CONTEXT = 2048  # positions that the model knows
WAITING = 48  # conversations to choose from when a row is filled
SHARD_ROWS = 2048


def stretched(ids, eot, rng):
    """
    Positions of a conversation's ids. Some conversations get gaps between turns and cover the whole context, so
    that rows of SEQUENCE ids also train attention over long distances.
    """
    gap, places = 0, []
    room = CONTEXT - len(ids) if rng.random() < .3 else 0
    for token in ids:
        places.append(len(places) + gap)
        if token == eot and room > gap and rng.random() < .5:
            gap += int((room - gap) * rng.random() ** 2)
    return places


def conversations(vocab, maker, rng):
    """Yields (ids, weights, positions) of conversations, cut after SEQUENCE ids."""
    while True:
        turns = [(u, a, corpus.given_characters(a, kind)) for u, a, kind in maker.conversation()]
        system = rng.choice(SYSTEMS) if rng.random() < .1 else None
        ids, weights = (part[:SEQUENCE] for part in vocab.conversation(turns, system))
        yield ids, weights, stretched(ids, vocab.eot, rng)


def fill_row(talks, waiting):
    """
    -> conversations that fit into a row together: the one that has waited longest, then the longest that fits, until
    none fits.
    """
    row, room = [], SEQUENCE
    while True:
        while len(waiting) < WAITING:
            waiting.append(next(talks))
        fits = [talk for talk in waiting if len(talk[0]) <= room]
        if not fits:
            return row
        best = max(fits, key=lambda talk: len(talk[0])) if row else waiting[0]
        waiting.remove(best)
        row.append(best)
        room -= len(best[0])


def make_shard(vocab, n_rows, seed, number, is_hard):
    """-> ids, weights, conversation numbers, positions: each (n_rows, SEQUENCE)"""
    rng = random.Random(f"{seed} {number}")
    maker = corpus.Maker("train", rng, hard=is_hard, pieces=vocab.pieces() if is_hard else None)
    shard = {"ids": np.full((n_rows, SEQUENCE), vocab.eos, np.uint16),
             "weights": np.zeros((n_rows, SEQUENCE), np.float16),
             "parts": np.full((n_rows, SEQUENCE), 255, np.uint8),
             "positions": np.zeros((n_rows, SEQUENCE), np.uint16)}
    talks, waiting = conversations(vocab, maker, rng), []
    for row in range(n_rows):
        at = 0
        for part, (ids, weights, places) in enumerate(fill_row(talks, waiting)):
            here = slice(at, at + len(ids))
            for name, values in ("ids", ids), ("weights", weights), ("parts", part), ("positions", places):
                shard[name][row, here] = values
            at += len(ids)
    return shard


def begin_worker(vocab_path):
    """The training needs the processor more: the workers are ahead of it."""
    global worker_vocab
    os.nice(10)
    worker_vocab = read_vocabulary(vocab_path)


def shard_in_worker(*arguments):
    return make_shard(worker_vocab, *arguments)


class Rows:
    """
    Batches of rows. The workers are forked, so the object must exist before PyTorch starts its threads. `batch` is the
    number of rows of a step.
    """

    def __init__(self, vocab_path, seed, batch, n_workers):
        self.seed, self.batch, self.ahead = seed, batch, 2 * n_workers
        self.steps_a_shard = max(1, SHARD_ROWS // batch)
        self.pool = multiprocessing.get_context("fork").Pool(n_workers, begin_worker, (vocab_path,))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.terminate()

    def batches(self, step, is_hard):
        """Yields the arrays of make_shard() for one step after another. is_hard(step) chooses the mixture."""
        def start(number):
            shape = self.batch * self.steps_a_shard, self.seed, number, is_hard(number * self.steps_a_shard)
            return self.pool.apply_async(shard_in_worker, shape)

        number, within = divmod(step, self.steps_a_shard)
        waiting = collections.deque(start(number + i) for i in range(self.ahead))
        while True:
            shard = waiting.popleft().get()
            waiting.append(start(number + self.ahead))
            for i in range(within, self.steps_a_shard):
                yield {name: values[i * self.batch:(i + 1) * self.batch] for name, values in shard.items()}
            number, within = number + 1, 0
