"""From a name on the command line to a model that can read: Hub name, folder or `.gguf` file.

Everything that can be wrong with a name, a tokenizer or a device is found before any weight is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedTokenizerBase,
)
from transformers.utils import is_flash_attn_2_available

from ensemble.tokens import TokenizerError, Vocabulary, read_vocabulary
from safe.lm import LM, ModelError
from safe.reader import Reader

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadOptions:
    """How the weights of a model are loaded.

    device: cpu, cuda, cuda:N, or auto (spread over all devices). None for dtype and attn_implementation: the
    defaults of SPEC 8. quantization: 8bit or 4bit (bitsandbytes). allow_pickle: weights other than safetensors.
    """

    dtype: str | None = None
    device: str | None = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    quantization: str | None = None
    allow_pickle: bool = False

    def resolved(self) -> "LoadOptions":
        """The same with every default filled in. Raises ModelError for what this machine cannot do."""
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        cuda = device != "cpu" and torch.cuda.is_available()
        if device.startswith("cuda"):
            number = device.partition(":")[2] or "0"
            if not number.isdigit() or int(number) >= torch.cuda.device_count():
                raise ModelError(
                    f"--device {device}: this machine has {torch.cuda.device_count()} CUDA devices; use cpu"
                )
        elif device not in ("cpu", "auto"):
            raise ModelError(f"--device {device}: use cpu, cuda, cuda:N or auto, or one of these for each model")
        dtype = self.dtype or ("bfloat16" if cuda else "float32")
        if dtype not in DTYPES:
            raise ModelError(f"--dtype {dtype}: use {', '.join(DTYPES)}")
        default = "flash_attention_2" if cuda and is_flash_attn_2_available() else "sdpa"
        if self.quantization is not None:
            _check_quantization(self.quantization)
        return LoadOptions(
            dtype,
            device,
            self.attn_implementation or default,
            self.trust_remote_code,
            self.quantization,
            self.allow_pickle,
        )


def load_models(paths: Sequence[str], options: Sequence[LoadOptions], rows: int = 1) -> list[LM]:
    """The drafter and its verifiers, in order, with caches for `rows` answers in flight.

    All tokenizers are read before the first weights are. Raises ModelError or TokenizerError."""
    options = [option.resolved() for option in options]
    for option in options:
        if rows > 1 and option.attn_implementation not in ("sdpa", "eager"):
            raise ModelError(f"--batch_size above 1 needs --attn_implementation sdpa, not {option.attn_implementation}")
    sources = [_Source.find(path, option) for path, option in zip(paths, options, strict=True)]
    parts = [source.tokenizer_parts() for source in sources]
    models = [source.load(*part) for source, part in zip(sources, parts, strict=True)]
    for model in models:
        model.reserve(rows)
    return models


def check_models(paths: Sequence[str], options: Sequence[LoadOptions]) -> None:
    """Raise ModelError or TokenizerError for everything about the models that can be known without their weights."""
    for path, option in zip(paths, options, strict=True):
        load_reader(path, option)


def load_reader(path: str, options: LoadOptions) -> Reader:
    """How a model reads text, without its weights. Raises ModelError or TokenizerError."""
    return _Source.find(path, options.resolved()).tokenizer_parts()[2]


@dataclass(frozen=True)
class _Source:
    """Where a model comes from: the arguments that transformers wants for it."""

    name: str
    place: str
    files: dict[str, str]
    options: LoadOptions

    @classmethod
    def find(cls, name: str, options: LoadOptions) -> "_Source":
        path = Path(name)
        if name.endswith(".gguf"):
            if not path.is_file():
                raise ModelError(f"{name}: no such GGUF file; check the path")
            return cls(name, str(path.parent), {"gguf_file": path.name}, options)
        looks_local = name.startswith((".", "/", "~")) or name.endswith("/") or name.count("/") != 1
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise ModelError(f"{name}: the folder holds no config.json; give a folder made by save_pretrained")
        elif path.exists() or (looks_local and "/" in name) or not name:
            raise ModelError(f"{name or repr(name)}: no such model folder; give a folder, a .gguf file or a Hub name")
        return cls(name, str(path) if path.is_dir() else name, {}, options)

    def _call(self, loader, **kwargs):
        """A from_pretrained of transformers, its errors as one line that names the model."""
        try:
            return loader(self.place, trust_remote_code=self.options.trust_remote_code, **self.files, **kwargs)
        except (OSError, ValueError, KeyError, ImportError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"{self.name}: cannot be loaded: {reason}") from error

    def tokenizer_parts(self) -> tuple[PreTrainedTokenizerBase, Vocabulary, Reader]:
        """The tokenizer, what its ids stand for, and the reader of responses."""
        config = self._call(AutoConfig.from_pretrained).get_text_config(decoder=True)
        tokenizer = self._call(AutoTokenizer.from_pretrained)
        if not getattr(tokenizer, "is_fast", False):
            raise TokenizerError(f"{self.name}: no fast tokenizer (tokenizer.json); byte-exact reading needs one")
        layers = set(getattr(config, "layer_types", None) or ())
        if layers - {"full_attention", "sliding_attention"}:
            raise ModelError(
                f"{self.name}: its layers ({', '.join(sorted(layers))}) cannot be rolled back; attention only"
            )
        eos = _end_ids(tokenizer, self._generation_config())
        vocabulary = read_vocabulary(
            tokenizer.backend_tokenizer,
            name=self.name,
            size=max(config.vocab_size, 1),
            eos_ids=eos,
            silent_ids=set(tokenizer.all_special_ids) - set(eos),
        )
        return tokenizer, vocabulary, Reader(tokenizer.backend_tokenizer, vocabulary)

    def _generation_config(self) -> GenerationConfig | None:
        try:
            return GenerationConfig.from_pretrained(self.place)
        except OSError:  # a model without one: its tokenizer alone says how answers end
            return None

    def load(self, tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary, reader: Reader) -> LM:
        """The weights, on their device(s)."""
        options = self.options
        model = self._call(
            AutoModelForCausalLM.from_pretrained,
            dtype=DTYPES[options.dtype],
            attn_implementation=options.attn_implementation,
            device_map=options.device,
            use_safetensors=None if options.allow_pickle or self.files else True,
            **({"quantization_config": _quantization(options.quantization)} if options.quantization else {}),
        ).eval()
        default_eos = tokenizer.eos_token_id
        return LM(self.name, model, vocabulary, reader, partial(prompt_ids, tokenizer), default_eos)


def prompt_ids(tokenizer: PreTrainedTokenizerBase, message: str) -> list[int]:
    """The ids of a prompt (SPEC 7): one user message in the chat template, or the plain text of a base model with its
    own special tokens (BOS). Control tokens written in the message are text."""
    if tokenizer.chat_template is None:
        return tokenizer(message, split_special_tokens=True)["input_ids"]
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": message}],
        add_generation_prompt=True,
        return_dict=False,
        sanitize_control_tokens=True,
    )


def _end_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> list[int]:
    """SPEC 1: the EOS ids of the tokenizer, of the generation config and of the chat template's end of turn."""
    listed = getattr(generation, "eos_token_id", None)
    ids = {
        tokenizer.eos_token_id,
        *(listed if isinstance(listed, list) else [listed]),
        _end_of_turn(tokenizer),
    }
    return sorted(ids - {None})


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that the chat template writes behind an assistant's message."""
    if tokenizer.chat_template is None:
        return None
    turns = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "ANSWER"}]
    after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("ANSWER")[2]
    ids = tokenizer(after.lstrip(), add_special_tokens=False)["input_ids"]
    return ids[0] if ids and ids[0] in set(tokenizer.all_special_ids) | _special_ids(tokenizer) else None


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    return {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}


def _check_quantization(kind: str) -> None:
    if kind not in ("8bit", "4bit"):
        raise ModelError(f"--quantization {kind}: use 8bit or 4bit")
    try:
        import bitsandbytes  # noqa: F401
    except ImportError:
        raise ModelError(f"--quantization {kind} needs the package bitsandbytes: pip install bitsandbytes") from None


def _quantization(kind: str):
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(load_in_8bit=kind == "8bit", load_in_4bit=kind == "4bit")
