"""The verifier as a torch module: a small BERT that reads a claim beside a premise.

Input is ``[CLS] claim [SEP] premise [SEP]`` with token types 0 and 1. The claim's tokens are the attended
tokens of type 0 but the first (``[CLS]``) and the last (``[SEP]``); ``claim_mask`` finds them by position
alone, so no token ids are built into the graph. Two heads read the encoder: one, on ``[CLS]`` and the mean
of the claim's tokens, says whether the premise wholly supports the claim and whether it contradicts it; the
other says of each token whether the premise leaves it unsupported (meaningful on the claim's tokens only).

A checkpoint folder holds ``model.safetensors`` (``encoder.*`` as transformers' BertModel without its
pooler, ``dense.*``, ``out.*``, ``tokens.*``), ``config.json`` (BertConfig) and ``tokenizer.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from training.checkpoint import require_model
from training.examples import DataError

MAX_TOKENS: Final = 256
_DROPOUT: Final = 0.1
_MOST_SAID: Final = 200  # characters of a library's error

Attention = Literal["sdpa", "eager"]


def claim_mask(attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
    """1 at the claim's tokens, 0 elsewhere; ``[B, T]``, of the dtype of ``attention_mask``.

    The claim's tokens are those of type 0 that are neither the first of the row nor followed by something
    else than an attended token of type 0: that leaves out ``[CLS]``, the claim's ``[SEP]`` and padding.
    """
    first = attention_mask * (1 - token_type_ids)
    behind = torch.cat([first[:, 1:], torch.zeros_like(first[:, :1])], dim=1)
    before = torch.cat([torch.zeros_like(first[:, :1]), first[:, :-1]], dim=1)
    return before * first * behind


class Verifier(nn.Module):
    """The encoder and its two heads. ``tokenizer_json`` is the text of the tokenizer that belongs to it,
    without truncation and padding of its own."""

    def __init__(
        self, config: BertConfig, tokenizer_json: str, *, attention: Attention = "sdpa", encoder: Any = None
    ) -> None:
        super().__init__()
        self.config = config
        self.tokenizer_json = tokenizer_json
        if encoder is None:
            config._attn_implementation = attention
            encoder = BertModel(config, add_pooling_layer=False)
        self.encoder = encoder
        width = config.hidden_size
        self.dropout = nn.Dropout(_DROPOUT)
        self.dense = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 2)
        self.tokens = nn.Linear(width, 1)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``(logits, token_logits)`` of int64 inputs ``[B, T]``: ``[B, 2]`` (support, contradiction; each
        for its own sigmoid) and ``[B, T]`` (unsupported)."""
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        claim = claim_mask(attention_mask, token_type_ids).unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * claim).sum(dim=1) / claim.sum(dim=1).clamp(min=1.0)
        together = torch.cat([hidden[:, 0], mean], dim=-1)
        logits = self.out(self.dropout(torch.tanh(self.dense(self.dropout(together)))))
        return logits, self.tokens(self.dropout(hidden)).squeeze(-1)

    @classmethod
    def from_base(cls, folder: Path, *, attention: Attention = "sdpa") -> Verifier:
        """A base model (``config.json``, ``model.safetensors``, ``tokenizer.json``) with fresh heads.

        The word embeddings are frozen: they are half of the parameters and see too few of the words here.
        The encoder has no dropout: every pair is read once, and random numbers take a third of the time.
        Seed torch before for heads that can be made again. Raises DataError that names the file.
        """
        require_model(folder)
        with _readable(folder / "model.safetensors", "with its config.json"):
            encoder = BertModel.from_pretrained(
                str(folder),
                add_pooling_layer=False,
                attn_implementation=attention,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            ).float()
        with _readable(folder / "tokenizer.json"):
            tokenizer = _unpadded((folder / "tokenizer.json").read_text(encoding="utf-8"))
        made = cls(encoder.config, tokenizer, encoder=encoder)
        made.encoder.embeddings.word_embeddings.weight.requires_grad_(False)
        return made

    @classmethod
    def load(cls, checkpoint: Path, *, attention: Attention = "sdpa") -> Verifier:
        """What ``save`` wrote. Raises DataError that names the file, and a tensor that doesn't fit."""
        require_model(checkpoint)
        with _readable(checkpoint / "tokenizer.json"):
            tokenizer = _unpadded((checkpoint / "tokenizer.json").read_text(encoding="utf-8"))
        with _readable(checkpoint / "config.json"):
            config = BertConfig.from_json_file(str(checkpoint / "config.json"))
            made = cls(config, tokenizer, attention=attention)
        weights = checkpoint / "model.safetensors"
        with _readable(weights):
            tensors = load_file(weights)
        expected = made.state_dict()
        for name in sorted(expected.keys() | tensors.keys()):
            if name not in tensors or name not in expected or tensors[name].shape != expected[name].shape:
                raise DataError(
                    f"{weights}: {name} is not of the shape that config.json asks for, or one of both lacks "
                    "it; name a checkpoint that training.train wrote"
                )
        made.load_state_dict(tensors)
        made.encoder.embeddings.word_embeddings.weight.requires_grad_(False)
        return made

    def cut_positions(self) -> None:
        """Leave out the positions behind ``MAX_TOKENS``: no pair is longer, and they are files' bytes."""
        table = self.encoder.embeddings.position_embeddings
        if table.num_embeddings > MAX_TOKENS:
            kept = table.weight.detach()[:MAX_TOKENS].clone()
            self.encoder.embeddings.position_embeddings = nn.Embedding.from_pretrained(kept, freeze=False)
            self.config.max_position_embeddings = MAX_TOKENS

    def save(self, checkpoint: Path) -> None:
        """Write the folder; tensors in float32, whatever they were trained in."""
        checkpoint.mkdir(parents=True, exist_ok=True)
        tensors = {
            name: tensor.detach().to("cpu", torch.float32).contiguous()
            for name, tensor in self.state_dict().items()
            if tensor.is_floating_point()
        }
        save_file(tensors, checkpoint / "model.safetensors")
        (checkpoint / "config.json").write_text(self.config.to_json_string(use_diff=False), encoding="utf-8")
        (checkpoint / "tokenizer.json").write_text(self.tokenizer_json, encoding="utf-8")


@contextmanager
def _readable(file: Path, beside: str = "") -> Iterator[None]:
    """DataError that names ``file`` where a library can't read it: their errors have no base in common."""
    try:
        yield
    except Exception as error:
        what = " ".join(str(error).split())[:_MOST_SAID]
        raise DataError(
            f"{' '.join((str(file), beside)).rstrip()}: damaged ({type(error).__name__}: {what}); copy it "
            "again, or name another folder"
        ) from error


def _unpadded(tokenizer_json: str) -> str:
    """The tokenizer without truncation and padding of its own: callers cut and pad where they know why.

    Raises an error of the library where it is none.
    """
    raw = json.loads(tokenizer_json)
    raw["truncation"] = raw["padding"] = None
    text = json.dumps(raw, ensure_ascii=False, separators=(",", ":"))
    Tokenizer.from_str(text)
    return text
