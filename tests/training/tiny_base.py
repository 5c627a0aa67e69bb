"""A base model made where it is needed: two layers of width 32, a vocabulary of the made data's words."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.training.made_data import WORDS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_base(folder: Path) -> Path:
    """``config.json``, ``model.safetensors``, ``tokenizer.json``; the same weights each time."""
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True)
    words = vocabulary()
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=256,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def vocabulary() -> dict[str, int]:
    """The made data's words, special tokens first."""
    return {word: number for number, word in enumerate((*SPECIAL, *dict.fromkeys(WORDS)))}


def write_tokenizer(folder: Path) -> None:
    """``tokenizer.json``."""
    words = vocabulary()
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])],
    )
    tokenizer.enable_truncation(8)  # as published ones come; not to be obeyed
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
