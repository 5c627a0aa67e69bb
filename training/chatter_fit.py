"""Fits the words that tell chatter from what states something (``guardrail/claims/data/chatter.json``).

Chatter is what ``training/chatter.yaml`` says; statements are its ``something``, the statements of
``training/written``, the claims of the pool and pieces of them. Words that chatter doesn't use have no weight
of their own unless claims use them often, and rare ones of chatter are at times taken for unknown: so the fit
learns what an unknown word means.

    python -m training.chatter_fit --data DATA

Takes a minute on one processor. Prints how much of held-out chatter is told, and of held-out claims, which
should be next to none: those are listed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import yaml

from guardrail.claims import chatter
from guardrail.claims.chatter import KINDS, START, evidence, known_as, tokens_of
from training.rows import LICENCES, pool
from training.steps import running
from training.written import read_facts, written_examples

_WRITTEN: Final = Path(__file__).with_name("chatter.yaml")
_PACKAGED: Final = Path(chatter.__file__).parent / "data" / "chatter.json"
_ALTERNATIVES: Final = re.compile(r"\[([^\[\]]*)\]")
_SLOT: Final = re.compile(r"\{(\w+)\}")
_TOPIC: Final = re.compile(r"\b(?:the|your|our|a) ([a-z]{3,}(?: [a-z]{4,})?) (?:is|are|was|must|can|has)\b")
_WORDS: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CONVERSATIONS: Final = "begin-"  # whose claims are chatter themselves
_CLAIMS: Final = 36_000
_FROM_POOL: Final = 0.4  # of those
_JOINED: Final = 1_500  # pairs of chatter that make one sentence
_PIECES: Final = 1_500
_JOINTS: Final = (", and ", ", but ", ", so ", ". ", "; ", ", though ", " - ")
_MOST_INSTANCES: Final = 60  # of a pattern
_FREQUENT: Final = 100  # claims with a word
_HIDDEN: Final = {1: 0.5, 2: 0.25}  # how often a word that occurs once or twice is taken for unknown
_HELD_OUT: Final = 10  # every tenth
_MOST_TOKENS: Final = 60
_EPOCHS: Final = 14
_BATCH: Final = 256
_DECAY: Final = 4e-5
_RATES: Final = (0.033, 0.003)
_CHATTER_COSTS, _CLAIM_COSTS, _WRITTEN_COST = 2.0, 3.0, 5.0
_FEWEST_PAIRS: Final = 4
_LEAST_WEIGHT: Final = 0.4  # of a pair that is kept
_MARGIN: Final = 1.0  # in logits: chatter is what is this much more likely to be


class _Sentence(NamedTuple):
    text: str
    states: bool
    cost: float

    @property
    def held_out(self) -> bool:
        """By how it begins, so that sentences of a pattern stay together; what ``something`` lists never."""
        return self.cost != _WRITTEN_COST and zlib.crc32(self.text[:12].encode()) % _HELD_OUT == 0


def instances(pattern: str, slots: Mapping[str, list[str]], random_: random.Random) -> list[str]:
    """Sentences that ``pattern`` stands for, more of them the more alternatives it has."""
    most = min(_MOST_INSTANCES, max(3, 2 * pattern.count("|") + 2))
    return sorted({_instance(pattern, slots, random_) for _ in range(most)})


def _instance(pattern: str, slots: Mapping[str, list[str]], random_: random.Random) -> str:
    text = _ALTERNATIVES.sub(lambda found: random_.choice(found[1].split("|")), pattern)
    text = _SLOT.sub(lambda found: random_.choice(slots[found[1]]), text)
    text = re.sub(r" (?=[,.:!?])", "", re.sub(r"\s+", " ", text))
    return re.sub(r"(?<=[:.!?,])[.:](?=$)", "", text).strip()


def _statements(data: Path, random_: random.Random) -> list[str]:
    """Claims of the pool and of the written facts."""
    written = [each.claim for each in written_examples(read_facts(), seed=0)]
    rows = [row.claim for row in _pooled(data)]
    share = int(_CLAIMS * _FROM_POOL)
    return random_.sample(rows, min(len(rows), share)) + random_.sample(
        written, min(len(written), _CLAIMS - share)
    )


def _pooled(data: Path) -> Iterator[Any]:
    for row in pool(data / "pool-train.jsonl.gz"):
        if row.dataset in LICENCES and not row.dataset.startswith(_CONVERSATIONS):
            yield row


def _topics(claims: Iterable[str]) -> list[str]:
    topics = sorted({found[1] for claim in claims for found in _TOPIC.finditer(claim)})
    return topics + [f"the {topic}" for topic in topics] * 2


def _sentences(written: Mapping[str, Any], claims: list[str], random_: random.Random) -> list[_Sentence]:
    slots = written["slots"]
    said, stated = (
        [
            each
            for patterns in written[part].values()
            for p in patterns
            for each in instances(p, slots, random_)
        ]
        for part in ("nothing", "something")
    )
    plain = [each for each in said if each.isascii() and not each.endswith(("?", ":"))]
    for _ in range(_JOINED):
        first, second = random_.sample(plain, 2)
        said.append(first.rstrip(".!") + random_.choice(_JOINTS) + second)
    known = {token.lower() for token in _written_tokens(written)}
    for claim in random_.sample(claims, _PIECES):
        words = _WORDS.findall(claim)
        length = random_.randint(2, 4)
        start = random_.randrange(max(1, len(words) - length))
        piece = words[start : start + length]
        if not known.issuperset(word.lower() for word in piece):
            stated.append(" ".join(piece).capitalize() + random_.choice(("", ".", "!", ":")))
    return [
        *(_Sentence(text, states=False, cost=_CHATTER_COSTS) for text in said),
        *(_Sentence(text, states=True, cost=_WRITTEN_COST) for text in stated),
        *(_Sentence(text, states=True, cost=_CLAIM_COSTS) for text in claims),
    ]


def _written_tokens(written: Mapping[str, Any]) -> Iterator[str]:
    for patterns in written["nothing"].values():
        for pattern in patterns:
            yield from tokens_of(pattern)


class _Vocabulary:
    """Which words have weights of their own, and how sentences look to the fit."""

    def __init__(self, written: Mapping[str, Any], sentences: Iterable[_Sentence]) -> None:
        counts = Counter(token.lower() for token in _written_tokens(written))
        of_claims = Counter(
            word
            for each in sentences
            if each.cost == _CLAIM_COSTS
            for word in {w.lower() for w in tokens_of(each.text)}
        )
        topics = {word for name in ("t", "n") for topic in written["slots"][name] for word in topic.split()}
        frequent = {
            word for word, count in of_claims.items() if count >= _FREQUENT and word.isalpha()
        } - topics
        self.words = {*counts, *frequent}
        self._hidden = {
            word: _HIDDEN[count]
            for word, count in counts.items()
            if count in _HIDDEN and word not in frequent
        }

    def features(self, sentence: _Sentence, random_: random.Random) -> list[str]:
        """Word and pair of each token, one behind the other, and the pair at the end."""
        found, before = [], START
        for i, token in enumerate(islice(tokens_of(sentence.text), _MOST_TOKENS)):
            word = known_as(token, self.words, first=not i)
            if not sentence.states and random_.random() < self._hidden.get(word, 0):
                word = known_as(token, (), first=True)
            found += [word, f"{before} {word}"]
            before = word
        return [*found, f"{before} $"]


def fit(
    sentences: list[_Sentence], vocabulary: _Vocabulary, random_: random.Random
) -> tuple[dict[str, float], float]:
    """The weights, and how much a stretch of chatter may weigh at most."""
    encoded = [vocabulary.features(each, random_) for each in sentences]
    counts = Counter(name for features in encoded for name in features)
    names = [name for name, count in counts.items() if " " not in name or count >= _FEWEST_PAIRS]
    index = {name: i + 1 for i, name in enumerate(names)}  # 0: a pair that is too rare
    ids = np.zeros((len(encoded), _MOST_TOKENS, 2), np.int32)
    ends = np.zeros(len(encoded), np.int32)
    for i, features in enumerate(encoded):
        *inner, last = (index.get(name, 0) for name in features)
        ids[i, : len(inner) // 2] = np.array(inner, np.int32).reshape(-1, 2)
        ends[i] = last
    states = np.array([each.states for each in sentences], float)
    costs = np.array([each.cost for each in sentences])
    weights = np.zeros(len(names) + 2)  # the last is the bias
    for name in names:
        weights[index[name]] = 0.0 if " " in name else 1.0 if name in KINDS else 0.2
    weights[-1] = -2.0
    means, squares = np.zeros_like(weights), np.zeros_like(weights)
    step, draw = 0, np.random.default_rng(0)
    for epoch in range(_EPOCHS):
        rate = _RATES[0] * (1 - epoch / _EPOCHS) + _RATES[1]
        order = draw.permutation(len(encoded))
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            slope = _slope(weights, ids[batch], ends[batch], states[batch], costs[batch])
            step += 1
            means = 0.9 * means + 0.1 * slope
            squares = 0.999 * squares + 0.001 * slope * slope
            weights -= rate * (means / (1 - 0.9**step)) / (np.sqrt(squares / (1 - 0.999**step)) + 1e-6)
            weights[0] = 0
    kept = {name: round(float(weights[i]), 2) for name, i in index.items()}
    kept = {name: w for name, w in kept.items() if " " not in name or abs(w) >= _LEAST_WEIGHT}
    for word in vocabulary.words:
        kept.setdefault(word, 0.0)
    return kept, round(float(-weights[-1]) - _MARGIN, 2)


def _slope(weights: Any, ids: Any, ends: Any, states: Any, costs: Any) -> Any:
    """The gradient of the logistic loss, through the stretch of each sentence that weighs most."""
    each = weights[ids].sum(2)
    rows = len(ids)
    run, start, most = np.zeros(rows), np.zeros(rows, int), np.zeros(rows)
    first, last = np.zeros(rows, int), np.full(rows, -1)
    for j in range(each.shape[1]):
        start = np.where(run <= 0, j, start)
        run = np.maximum(run, 0) + each[:, j]
        better = (run > most) & (ids[:, j, 0] > 0)
        most, first, last = (np.where(better, a, b) for a, b in ((run, most), (start, first), (j, last)))
    chance = 1 / (1 + np.exp(-(most + weights[ends] + weights[-1])))
    slopes = (chance - states) * costs / rows
    places = np.arange(each.shape[1])[None]
    inside = (places >= first[:, None]) & (places <= last[:, None])
    found = _DECAY * weights
    found[-1] = slopes.sum()
    np.add.at(found, ids[inside], np.broadcast_to(slopes[:, None], inside.shape)[inside][:, None])
    np.add.at(found, ends, slopes)
    return found


def main() -> None:
    """Fit, measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=_PACKAGED, help="default: the packaged weights")
    options = parser.parse_args()
    with running(parser, "chatter_fit"):
        _run(options.data, options.out)


def _run(data: Path, out: Path) -> None:
    random_ = random.Random(0)
    written = yaml.safe_load(_WRITTEN.read_text("utf-8"))
    claims = _statements(data, random_)
    written["slots"]["t"] = _topics(claims)
    sentences = _sentences(written, claims, random_)
    vocabulary = _Vocabulary(written, sentences)
    weights, most = fit([each for each in sentences if not each.held_out], vocabulary, random_)
    for states, kind in ((False, "chatter"), (True, "claims")):
        held = [each for each in sentences if each.held_out and each.states is states]
        told = [each.text for each in held if evidence(each.text, weights) <= most]
        print(f"{kind}: {len(told):,} of {len(held):,} held out taken for chatter")
        if states:
            print(*told, sep="\n")
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}:{weights[name]:g}" for name in sorted(weights)
    )
    out.write_text(f'{{"most":{most:g},"weights":{{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main()
