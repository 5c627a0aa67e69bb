"""A large teacher, then the small verifier in its words: WORK/pairs.jsonl.gz -> a checkpoint, on one GPU.

    python -m training.distil --pairs FILE... --teacher FOLDER --base FOLDER --out CHECKPOINT [--measure FILE]

The teacher (an MPNet or BERT of some 110 million parameters) reads every claim beside the long premise of
its row, twice over all rows, and learns from their labels. Then it says of every *reading* of a row, which
is what the judge reads, how likely it supports and contradicts the claim, and of each token of the claim
whether it lacks support. The student learns from both: labels where they hold for the reading, and what the
teacher says. Files may be compressed with gzip or xz; rows that are held out are not trained on, and both
models are measured on them. ``--measure`` names rows like them that are only read: what both say of them
is written to ``measured.json`` in ``--out``.

``--out`` becomes a checkpoint as ``training.verifier`` reads it, with a ``training.json``:
``training.export`` takes it. This module needs torch, transformers, tokenizers, safetensors and numpy, and
nothing else that the guardrail needs, so that it runs on a machine that has a GPU and little else.

Losses are those of ``training.trainer``: cross-entropy of support, half that of contradiction, a third of
that of the claim's tokens.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import Pool
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel

from guardrail.evals.statistics import auroc

_CONTRADICTION: Final = 0.5
_TOKENS: Final = 0.33
_GOLD: Final = 0.4  # of the student's loss, where a label holds for the reading
_UNKNOWN: Final = -1.0
_WARM_UP: Final = 0.05
_SORTED_WITHIN: Final = 1 << 15
_TEACHER_TOKENS: Final = 512
_STUDENT_TOKENS: Final = 256
_HEAD_DROPOUT: Final = 0.1
_READ_TOKENS: Final = 1 << 16  # of a batch that is only read
_LEAST_ROWS: Final = 50  # of a group that is reported
_DEVICE: Final = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Pairs:
    """Encoded pairs, one flat array of ids. Arrays have one entry a pair but ``ids`` and ``marks``: those
    have one a token and one a token of the claim. A target that nobody knows is -1."""

    ids: Any
    first: Any
    length: Any
    claim: Any  # tokens of the claim
    support: Any
    contradiction: Any
    settled: Any
    marks: Any
    mark_first: Any
    dataset: list[str]
    licence: list[str]
    held_out: Any
    row: Any

    def __len__(self) -> int:
        return len(self.first)


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file, whatever it is packed with."""
    opened: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from lines


def kind_of(folder: Path) -> str:
    """The type of a model, by its config.json. Raises OSError, KeyError and ValueError."""
    kind: str = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    return kind


def unpadded(folder: Path) -> str:
    """The tokenizer.json of a folder without truncation and padding of its own."""
    raw = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    raw["truncation"] = raw["padding"] = None
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"))


class Encoder:
    """Texts -> ids of pairs, as one model wants them."""

    def __init__(self, folder: Path, most: int) -> None:
        self._tokenizer = Tokenizer.from_str(unpadded(folder))
        self.doubled = kind_of(folder) == "mpnet"
        begin, end = ("<s>", "</s>") if self.doubled else ("[CLS]", "[SEP]")
        self._begin = [self._tokenizer.token_to_id(begin)]
        self._end = [self._tokenizer.token_to_id(end)]
        self._most = most

    def rows(self, lines: Sequence[tuple[int, str]], *, readings: bool) -> list[tuple[Any, ...]]:
        """The pairs of rows: of each reading, or of the whole premise."""
        rows = [(number, json.loads(line)) for number, line in lines]
        claims = self._tokenizer.encode_batch([row["claim"] for _, row in rows], add_special_tokens=False)
        premises = self._tokenizer.encode_batch([row["premise"] for _, row in rows], add_special_tokens=False)
        found = []
        for (number, row), claim, premise in zip(rows, claims, premises, strict=True):
            own = claim.ids[: self._most // 2]
            room = self._most - len(own) - 3 - self.doubled
            spans = row["spans"]
            if row["supported"]:
                spans = []
            marks = [
                _UNKNOWN if spans is None else float(any(s < end and start < e for s, e in spans))
                for start, end in claim.offsets[: len(own)]
            ]
            contradicted = row["contradicted"]
            target = (
                float(row["supported"]),
                _UNKNOWN if contradicted is None else float(contradicted),
            )
            wanted: list[tuple[Sequence[int], bool]]
            if readings:
                starts = np.array([start for start, _ in premise.offsets])
                ids = np.array(premise.ids)
                wanted = []
                for pieces, settled in zip(row["readings"], row["settled"], strict=False):
                    held = np.zeros(len(ids), bool)
                    for start, end in pieces:
                        held |= (starts >= start) & (starts < end)
                    wanted.append((ids[held].tolist(), settled))
            else:
                wanted = [(premise.ids, True)]
            for text, settled in wanted:
                middle = self._end * (1 + self.doubled)
                pair = [*self._begin, *own, *middle, *text[:room], *self._end]
                found.append(
                    (np.array(pair, np.int32), len(own), *target, settled, np.array(marks, np.float32),
                     row["dataset"], row["licence"], bool(row.get("held_out")), number)
                )  # fmt: skip
        return found


def encoded(paths: Sequence[Path], folder: Path, most: int, *, readings: bool, processes: int) -> Pairs:
    """The pairs of files."""
    encoder = Encoder(folder, most)
    lines = [(n, line) for n, line in enumerate(line for path in paths for line in lines_of(path))]
    chunks = [lines[at : at + 2000] for at in range(0, len(lines), 2000)]
    with Pool(processes) as pool:
        found = [
            each for part in pool.imap(partial(encoder.rows, readings=readings), chunks) for each in part
        ]
    columns = zip(*found, strict=True)
    ids, claim, support, contradiction, settled, marks, dataset, licence, held_out, row = columns
    length = np.array([len(each) for each in ids])
    counts = np.array([len(each) for each in marks])
    return Pairs(
        np.concatenate(ids), np.cumsum(length) - length, length, np.array(claim),
        np.array(support, np.float32), np.array(contradiction, np.float32), np.array(settled),
        np.concatenate(marks), np.cumsum(counts) - counts, list(dataset), list(licence), np.array(held_out),
        np.array(row),
    )  # fmt: skip


class Model(nn.Module):
    """An encoder with the verifier's heads (``training.verifier.Verifier``)."""

    def __init__(self, folder: Path, *, dropout: float) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(
            str(folder),
            add_pooling_layer=False,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        ).float()
        width = self.encoder.config.hidden_size
        self.typed = self.encoder.config.model_type == "bert"
        self.dropout = nn.Dropout(_HEAD_DROPOUT)
        self.dense = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 2)
        self.tokens = nn.Linear(width, 1)

    def forward(self, ids: Tensor, attended: Tensor, claim: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
        inputs = {"input_ids": ids, "attention_mask": attended}
        if self.typed:
            inputs["token_type_ids"] = types
        hidden = self.encoder(**inputs).last_hidden_state
        mask = claim.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1.0)
        together = torch.cat([hidden[:, 0], mean], dim=-1)
        logits = self.out(self.dropout(torch.tanh(self.dense(self.dropout(together)))))
        return logits, self.tokens(self.dropout(hidden)).squeeze(-1)


class Batches:
    """Batches of pairs of like length, made on the GPU."""

    def __init__(self, pairs: Pairs, *, tokens: int, pad: int, device: str) -> None:
        self._pairs, self._tokens, self._pad, self._device = pairs, tokens, pad, device
        self._ids = torch.from_numpy(pairs.ids).to(device)
        self._marks = torch.from_numpy(pairs.marks).to(device)

    def of(self, chosen: Any, random_: random.Random | None) -> Iterator[Any]:
        """The numbers of the pairs of each batch."""
        order = np.array(chosen)
        if random_ is not None:
            order = order[np.random.default_rng(random_.getrandbits(32)).permutation(len(order))]
        for start in range(0, len(order), _SORTED_WITHIN):
            part = order[start : start + _SORTED_WITHIN]
            part = part[np.argsort(self._pairs.length[part], kind="stable")]
            groups, begin = [], 0
            while begin < len(part):
                end = begin + 1
                while end < len(part) and (end - begin + 1) * self._pairs.length[part[end]] <= self._tokens:
                    end += 1
                groups.append(part[begin:end])
                begin = end
            if random_ is not None:
                random_.shuffle(groups)
            yield from groups

    def inputs(self, numbers: Any) -> tuple[dict[str, Tensor], Tensor]:
        """What the model takes, and the places of the claim's tokens in ``marks`` (-1 elsewhere)."""
        pairs, device = self._pairs, self._device
        length = torch.from_numpy(pairs.length[numbers]).to(device)
        first = torch.from_numpy(pairs.first[numbers]).to(device)
        claim = torch.from_numpy(pairs.claim[numbers]).to(device)
        marks = torch.from_numpy(pairs.mark_first[numbers]).to(device)
        wide = -(-int(pairs.length[numbers].max()) // 8) * 8
        at = torch.arange(wide, device=device)[None]
        attended = at < length[:, None]
        place = (first[:, None] + at).clamp(max=len(self._ids) - 1)
        ids = torch.where(attended, self._ids[place].long(), self._pad)
        own = (at >= 1) & (at <= claim[:, None])
        types = ((at > claim[:, None] + 1) & attended).long()
        where = torch.where(own, marks[:, None] + at - 1, -1)
        return {"ids": ids, "attended": attended.long(), "claim": own, "types": types}, where

    def marks(self, where: Tensor) -> Tensor:
        """The gold targets of the claim's tokens, -1 where unknown or no token of it."""
        return torch.where(where >= 0, self._marks[where.clamp(min=0)], _UNKNOWN)


def _known(logits: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
    known = (targets != _UNKNOWN).to(logits.dtype) * weight
    each = functional.binary_cross_entropy_with_logits(logits, targets.clamp(min=0.0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1.0)


def loss_of(logits: Tensor, token_logits: Tensor, targets: Tensor, marks: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropies of what is known, ``weight`` by pair."""
    return (
        _known(logits[:, 0], targets[:, 0], weight)
        + _CONTRADICTION * _known(logits[:, 1], targets[:, 1], weight)
        + _TOKENS * _known(token_logits, marks, weight[:, None])
    )


@dataclass
class Told:
    """What a teacher says of pairs: ``[N, 2]`` and one a token of the claims; probabilities."""

    targets: Tensor
    marks: Tensor


def train(
    model: Model,
    pairs: Pairs,
    *,
    epochs: float,
    rate: float,
    tokens: int,
    seed: int,
    seconds: float,
    told: Told | None = None,
) -> None:
    """Train in place on the pairs that are not held out, for so many epochs or seconds, whichever end
    first."""
    device = _DEVICE
    model.to(device).train()
    batches = Batches(pairs, tokens=tokens, pad=model.encoder.config.pad_token_id or 0, device=device)
    chosen = np.flatnonzero(~pairs.held_out)
    weights = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01, fused=True)
    random_ = random.Random(seed)
    last = int(epochs * len(chosen))
    read, began, count = 0, time.monotonic(), 0
    total = torch.zeros((), device=device)
    done = 0.0
    while done < 1:
        for numbers in batches.of(chosen, random_):
            done = max(read / last, (time.monotonic() - began) / seconds)
            if done >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, done / _WARM_UP) * min(1.0, (1 - done) / (1 - _WARM_UP))
            inputs, where = batches.inputs(numbers)
            gold = torch.from_numpy(
                np.stack([pairs.support[numbers], pairs.contradiction[numbers]], axis=1)
            ).to(device)
            settled = torch.from_numpy(pairs.settled[numbers]).to(device).float()
            with torch.autocast(_DEVICE, torch.bfloat16):
                logits, token_logits = model(**inputs)
            logits, token_logits = logits.float(), token_logits.float()
            if told is None:
                loss = loss_of(logits, token_logits, gold, batches.marks(where), settled)
            else:
                at = torch.from_numpy(numbers).to(device)
                soft = torch.where(where >= 0, told.marks[where.clamp(min=0)], _UNKNOWN)
                loss = _GOLD * loss_of(logits, token_logits, gold, batches.marks(where), settled) + (
                    1 - _GOLD
                ) * loss_of(logits, token_logits, told.targets[at], soft, torch.ones_like(settled))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            read += len(numbers)
            total += loss.detach()
            count += 1
            if count % 500 == 0:
                print(
                    f"  {read:,} of {last:,} pairs, {time.monotonic() - began:.0f} s, "
                    f"loss {float(total) / 500:.4f}",
                    flush=True,
                )
                total.zero_()


def say(model: Model, pairs: Pairs, *, tokens: int) -> Told:
    """What the model says of all pairs."""
    device = _DEVICE
    model.to(device).eval()
    batches = Batches(pairs, tokens=tokens, pad=model.encoder.config.pad_token_id or 0, device=device)
    targets = torch.zeros(len(pairs), 2, device=device)
    marks = torch.full((len(pairs.marks),), _UNKNOWN, device=device)
    for numbers in batches.of(np.arange(len(pairs)), None):
        inputs, where = batches.inputs(numbers)
        with torch.inference_mode(), torch.autocast(_DEVICE, torch.bfloat16):
            logits, token_logits = model(**inputs)
        targets[torch.from_numpy(numbers).to(device)] = logits.float().sigmoid()
        own = where >= 0
        marks[where[own]] = token_logits.float().sigmoid()[own]
    return Told(targets, marks)


def report(name: str, pairs: Pairs, told: Told) -> None:
    """AUROC of support by data set, of the highest reading of each held-out row."""
    best: dict[int, float] = {}
    label: dict[int, tuple[str, float]] = {}
    support = told.targets[:, 0].cpu().numpy()
    for number in np.flatnonzero(pairs.held_out):
        row = int(pairs.row[number])
        best[row] = max(best.get(row, 0.0), float(support[number]))
        label[row] = pairs.dataset[number], float(pairs.support[number])
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row, value in best.items():
        dataset, gold = label[row]
        group = dataset if dataset.startswith("written-forms") else dataset.partition("-")[0]
        groups[group.removesuffix("_second")].append((value, gold))
    print(name, end=": ")
    for group, found in sorted(groups.items()):
        value = auroc([gold for _, gold in found], [value for value, _ in found])
        if not math.isnan(value) and len(found) >= _LEAST_ROWS:
            print(f"{group} {100 * value:.1f} ({len(found)})", end=", ")
    print(flush=True)


def write_checkpoint(model: Model, base: Path, out: Path, described: dict[str, Any]) -> None:
    """The folder that ``training.verifier.Verifier.load`` reads."""
    tensors = {
        name: tensor.detach().to("cpu", torch.float32).contiguous()
        for name, tensor in model.state_dict().items()
        if tensor.is_floating_point()
    }
    save_file(tensors, out / "model.safetensors")
    config = model.encoder.config.to_json_string(use_diff=False)
    (out / "config.json").write_text(config, encoding="utf-8")
    (out / "tokenizer.json").write_text(unpadded(base), encoding="utf-8")
    (out / "training.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def described_by(options: argparse.Namespace, pairs: Pairs, seconds: float) -> dict[str, Any]:
    """What ``training.json`` says of the course: settings, and the readings of each data set."""
    trained = np.flatnonzero(~pairs.held_out).tolist()
    counts = Counter(pairs.dataset[number] for number in trained)
    licences = {pairs.dataset[number]: pairs.licence[number] for number in trained}
    return {
        "base": options.base.name,
        "teacher": options.teacher.name,
        "seed": options.seed,
        "teacher_epochs": options.teacher_epochs,
        "teacher_rate": options.teacher_rate,
        "epochs": options.epochs,
        "rate": options.rate,
        "batch_tokens": options.batch_tokens,
        "max_tokens": _STUDENT_TOKENS,
        "device": _DEVICE,
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        "pairs": len(trained),
        "seconds": round(seconds),
        "datasets": {
            name: {"pairs": count, "licence": licences[name]} for name, count in sorted(counts.items())
        },
    }


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--teacher", type=Path, required=True, help="folder of the large base")
    parser.add_argument("--base", type=Path, required=True, help="folder of the small base")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--measure", type=Path, help="rows that are only read")
    parser.add_argument("--teacher-epochs", type=float, default=2.0)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--teacher-minutes", type=float, default=600.0, help="at most")
    parser.add_argument("--minutes", type=float, default=600.0, help="at most, for the student")
    parser.add_argument("--teacher-rate", type=float, default=4e-5)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--batch-tokens", type=int, default=16384)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=20261206)
    options = parser.parse_args()
    if kind_of(options.base) != "bert":
        parser.error(f"--base: {options.base} is no BERT: no checkpoint can be made of it")
    _run(options)


def _run(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def note(what: str) -> None:
        print(f"[{time.monotonic() - began:.0f} s] {what}", flush=True)

    by_teacher = partial(encoded, folder=options.teacher, most=_TEACHER_TOKENS, processes=options.processes)
    by_student = partial(encoded, folder=options.base, most=_STUDENT_TOKENS, processes=options.processes)
    # All of it before the GPU is in use: the processes are forks of this one.
    long, short = (by_teacher(options.pairs, readings=readings) for readings in (False, True))
    own = by_student(options.pairs, readings=True)
    unlabelled: dict[str, Pairs] = {}
    if options.measure:
        unlabelled = {
            "teacher_long": by_teacher([options.measure], readings=False),
            "teacher": by_teacher([options.measure], readings=True),
            "student": by_student([options.measure], readings=True),
        }
    note(
        f"{len(long):,} rows, {long.length.mean():.0f} tokens in the mean; "
        f"{len(own):,} readings, {own.length.mean():.0f} tokens"
    )
    measured: dict[str, Any] = {}

    def measure(model: Model, *names: str) -> None:
        for name in names:
            if each := unlabelled.get(name):
                told = say(model, each, tokens=_READ_TOKENS)
                measured[name] = told.targets.cpu().numpy().round(4).tolist()
                measured[f"{name}_rows"] = each.row.tolist()

    teacher = Model(options.teacher, dropout=0.1)
    train(
        teacher, long, epochs=options.teacher_epochs, rate=options.teacher_rate,
        tokens=options.batch_tokens, seed=options.seed, seconds=60 * options.teacher_minutes,
    )  # fmt: skip
    note("teacher trained")
    report("teacher, long premises", long, say(teacher, long, tokens=_READ_TOKENS))
    told = say(teacher, short, tokens=_READ_TOKENS)
    report("teacher, readings", short, told)
    measure(teacher, "teacher_long", "teacher")
    del teacher, long
    told = _carried(told, short, own)
    student = Model(options.base, dropout=0.0)
    student.encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    train(
        student, own, epochs=options.epochs, rate=options.rate, tokens=options.batch_tokens,
        seed=options.seed, told=told, seconds=60 * options.minutes,
    )  # fmt: skip
    note("student trained")
    report("student, readings", own, say(student, own, tokens=_READ_TOKENS))
    measure(student, "student")
    if measured:
        (options.out / "measured.json").write_text(json.dumps(measured), encoding="utf-8")
    write_checkpoint(student, options.base, options.out, described_by(options, own, time.monotonic() - began))
    note("done")


def _carried(told: Told, by: Pairs, to: Pairs) -> Told:
    """The teacher's word on the tokens of claims, where both cut them alike; else unknown."""
    device = told.marks.device
    counts = np.diff(np.append(to.mark_first, len(to.marks)))
    before = np.diff(np.append(by.mark_first, len(by.marks)))
    alike = counts == before
    within = np.arange(len(to.marks)) - np.repeat(to.mark_first, counts)
    source = np.repeat(by.mark_first, counts) + within
    source = np.where(np.repeat(alike, counts), source, 0)
    marks = told.marks[torch.from_numpy(source).to(device)]
    marks = torch.where(torch.from_numpy(np.repeat(alike, counts)).to(device), marks, _UNKNOWN)
    print(f"  claims cut alike: {alike.mean():.3f}", flush=True)
    return Told(told.targets, marks)


if __name__ == "__main__":
    main()
