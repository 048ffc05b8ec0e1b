"""What decoding costs beside the forward passes: `python benchmarks/decode.py --model_path1 ... --model_path2 ...`

Everything is measured in one process, in alternating repeats, as ratios of medians; absolute times are those of the
machine. The ideal of a run is the sum of its forward passes alone: the passes that it made are recorded (how many ids
a cache held, how many were new, how many logits were kept) and run again with nothing around them.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, from anywhere

from cli.flags import add_data_flags, add_method_flags, add_model_flags, config_of, models_of  # noqa: E402
from data.load import load  # noqa: E402
from data.prompts import user_message  # noqa: E402
from safe.config import SafeConfig  # noqa: E402
from safe.decode import Answer, generate  # noqa: E402
from safe.lm import LM  # noqa: E402
from safe.loading import load_models  # noqa: E402

GAMMAS = (2, 3, 5, 8, "auto")
GROWTH_LENGTHS = (200, 1000, 3000)  # tokens of an answer at which the time per token is read
BUSY = 1.3  # a fixed piece of work that takes this much longer than its fastest run: the machine was busy


@dataclass
class Pass:
    """One recorded forward pass of one model."""

    model: LM
    kwargs: dict
    place: tuple  # what the cache was told before it
    start_seconds: float
    end_seconds: float

    @property
    def end(self) -> int:
        """Slots in use after the pass."""
        return self.place[3]


@dataclass
class Recorder:
    """The forward passes of some models while it is on."""

    passes: list[Pass] = field(default_factory=list)

    @contextmanager
    def on(self, models: Sequence[LM]) -> Iterator["Recorder"]:
        """Listen to the models' forward passes."""
        unwrapped = [model.model for model in models]
        for model in models:
            model.model = self._listener(model, model.model)
        try:
            yield self
        finally:
            for model, inner in zip(models, unwrapped, strict=True):
                model.model = inner

    def _listener(self, model: LM, inner) -> "Listener":
        return Listener(self, model, inner)


class Listener:
    """Stands in for a model; passes every call on and writes it down."""

    def __init__(self, recorder: Recorder, model: LM, inner):
        self.recorder, self.lm, self.inner = recorder, model, inner

    def __call__(self, **kwargs):
        cache = self.lm.cache
        place = (cache.first_row, cache.n_rows, cache.starts, cache.end, cache.positions)
        start = time.perf_counter()
        output = self.inner(**kwargs)
        synchronize(self.lm)
        self.recorder.passes.append(Pass(self.lm, kwargs, place, start, time.perf_counter()))
        return output

    def __getattr__(self, name):
        return getattr(self.inner, name)


def synchronize(model: LM) -> None:
    """Wait for a CUDA device, so that a clock read afterwards means something."""
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)


@torch.inference_mode()
def replay(passes: Sequence[Pass]) -> float:
    """Seconds of the recorded forward passes alone, with caches of their own."""
    models = {id(p.model): p.model for p in passes}.values()
    kept = {id(model): model.cache for model in models}
    for model in models:
        model.reserve(model.cache.rows)
    seconds = 0.0
    for p in passes:
        cache = p.model.cache
        cache.first_row, cache.n_rows, cache.starts, cache.end, cache.positions = p.place
        kwargs = p.kwargs | {"cache": cache}
        start = time.perf_counter()
        p.model.model(**kwargs)
        synchronize(p.model)
        seconds += time.perf_counter() - start
    for model in models:
        model.cache = kept[id(model)]
    return seconds


def run(models: Sequence[LM], questions: Sequence[str], config: SafeConfig) -> tuple[float, list[Answer]]:
    """Seconds and answers of one run."""
    for model in models:
        model.reserve(config.batch_size)
    start = time.perf_counter()
    answers = [answer for _, answer in generate(models, questions, config)]
    return time.perf_counter() - start, answers


@torch.inference_mode()
def plain_generate(model: LM, questions: Sequence[str], tokens: int) -> tuple[float, int]:
    """Seconds and tokens of transformers' own greedy `generate`."""
    ends, count, start = sorted(model.eos_symbol_ids), 0, time.perf_counter()
    for question in questions:
        prompt = torch.tensor([model.prompt_ids(question)], device=model.device)
        out = model.model.generate(
            prompt, do_sample=False, max_new_tokens=tokens, eos_token_id=ends, pad_token_id=ends[0],
            attention_mask=torch.ones_like(prompt),
        )  # fmt: skip
        count += out.shape[1] - prompt.shape[1]
    return time.perf_counter() - start, count


def medians(repeats: int, **timed: Callable[[], float]) -> dict[str, float]:
    """The median of each of several timings, taken in turn."""
    values: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, measure in timed.items():
            values[name].append(measure())
    return {name: statistics.median(got) for name, got in values.items()}


def over_ideal(models: Sequence[LM], questions: Sequence[str], config: SafeConfig, repeats: int) -> dict:
    """actual_over_ideal of a method, drafter passes per kept token, seconds per part."""
    recorder = Recorder()
    with recorder.on(models):
        _, answers = run(models, questions, config)
    tokens = sum(len(answer.token_ids) for answer in answers)
    times = medians(
        repeats,
        ideal=lambda: replay(recorder.passes),
        actual=lambda: run(models, questions, config)[0],
    )
    parts = {part: sum(answer.seconds[part] for answer in answers) for part in answers[0].seconds}
    return {
        "ideal": times["ideal"],
        "actual": times["actual"],
        "ratio": times["actual"] / times["ideal"],
        "tokens": tokens,
        "tokens_per_second": tokens / times["actual"],
        "drafter_passes_per_token": sum(answer.forward_passes[0] for answer in answers) / tokens,
        "ensemble_rate": sum(answer.verdicts["ensembled"] for answer in answers) / tokens,
        "seconds": parts,
    }


def greedy_over_generate(model: LM, questions: Sequence[str], tokens: int, repeats: int) -> dict:
    """Time per token of our greedy loop over that of `generate`, on the same questions."""
    greedy = SafeConfig(ensemble=False, max_new_tokens=tokens)
    count = {}

    def ours() -> float:
        seconds, answers = run([model], questions, greedy)
        count["ours"] = sum(len(answer.token_ids) for answer in answers)
        return seconds / count["ours"]

    def theirs() -> float:
        seconds, count["theirs"] = plain_generate(model, questions, tokens)
        return seconds / count["theirs"]

    times = medians(repeats, ours=ours, theirs=theirs)
    assert count["ours"] == count["theirs"], "greedy and generate differ in length"
    return {"ratio": times["ours"] / times["theirs"], **{name: 1 / t for name, t in times.items()}}


@contextmanager
def endless(models: Sequence[LM]) -> Iterator[None]:
    """Answers go on to max_new_tokens: the logits of EOS are pushed down."""
    hooks = []
    for model in models:
        ends = torch.tensor(sorted(model.eos_symbol_ids), device=model.device)

        def push_down(module, args, output, ends=ends):
            output.logits.index_fill_(-1, ends, -1e4)
            return output

        hooks.append(model.model.register_forward_hook(push_down))
    yield
    for hook in hooks:
        hook.remove()


def growth(models: Sequence[LM], question: str, config: SafeConfig) -> dict:
    """Seconds a token inside and outside of forward passes near three lengths of one long answer.

    Of the 200 tokens before each length the middle 80% of the gaps between passes count: a gap in which the process
    was not running says nothing about the code."""
    recorder = Recorder()
    with endless(models), recorder.on(models):
        run(models, [question], replace(config, max_new_tokens=max(GROWTH_LENGTHS)))
    prompt = len(models[0].prompt_ids(question))
    passes = recorder.passes
    gaps = [
        (after.start_seconds - before.end_seconds, before) for before, after in zip(passes, passes[1:], strict=False)
    ]
    drafter, at, result = models[0], 0, {}
    reached = []  # how long the answer was at each gap
    for _, before in gaps:
        at = before.end - prompt if before.model is drafter else at
        reached.append(at)
    for length in GROWTH_LENGTHS:
        near = [(gap, p) for (gap, p), n in zip(gaps, reached, strict=True) if length - 200 < n <= length]
        kept = sorted(gap for gap, _ in near)[len(near) // 10 : -len(near) // 10]
        inside = sum(p.end_seconds - p.start_seconds for _, p in near) / 200
        result[length] = {"inside": inside, "outside": statistics.mean(kept) * len(near) / 200}
    return result


def memory_overhead(models: Sequence[LM], questions: Sequence[str], config: SafeConfig) -> dict:
    """The most memory that decoding takes over weights and caches, as a share of the weights."""
    weights = sum(p.nbytes for model in models for p in model.model.parameters())
    before = _memory_now(models)
    run(models, questions, config)
    caches = sum(model.cache.memory() for model in models)
    return {"weights": weights, "caches": caches, "over": max(0, _memory_peak(models) - before - caches) / weights}


def _memory_now(models: Sequence[LM]) -> int:
    """Bytes in use, after which the peak is counted from here."""
    if models[0].device.type == "cuda":
        for model in models:
            torch.cuda.reset_peak_memory_stats(model.device)
        return sum(torch.cuda.memory_allocated(device) for device in {model.device for model in models})
    Path("/proc/self/clear_refs").write_text("5")  # the peak of the resident size begins anew
    return _status("VmRSS")


def _memory_peak(models: Sequence[LM]) -> int:
    if models[0].device.type == "cuda":
        return sum(torch.cuda.max_memory_allocated(device) for device in {model.device for model in models})
    return _status("VmHWM")


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def busy() -> float:
    """How much longer than at its fastest a fixed piece of work takes: well above 1 on a machine that others use."""
    matrix = torch.ones(400, 400)

    def work() -> float:
        start = time.perf_counter()
        for _ in range(10):
            matrix @ matrix
        return time.perf_counter() - start

    times = sorted(work() for _ in range(30))
    return times[-3] / times[0]


def measure(models: Sequence[LM], questions: Sequence[str], config: SafeConfig, args: argparse.Namespace) -> dict:
    """Everything, by name."""
    run(models, questions[:1], replace(config, max_new_tokens=16))  # the first passes also allocate
    methods = {
        "safe": config,
        "unite every token": replace(config, schedule="every", ensemble_type="unite"),
        "gac every token": replace(config, schedule="every", ensemble_type="gac"),
    }
    result = {"methods": {name: over_ideal(models, questions, c, args.repeats) for name, c in methods.items()}}
    result["greedy"] = greedy_over_generate(models[0], questions, config.max_new_tokens, args.repeats)
    result["memory"] = memory_overhead(models, questions, config)
    if args.growth:
        result["growth"] = growth(models, questions[0], config)
    if args.gammas:
        result["forward_seconds_per_token_by_gamma"] = by_gamma(models, questions, config, args.repeats)
    if len(args.batch_sizes) > 1:
        result["tokens_per_second_by_batch"] = by_batch(models, questions, config, args.batch_sizes, args.repeats)
    return result


def by_batch(models, questions, config: SafeConfig, batch_sizes: Sequence[int], repeats: int) -> dict[int, float]:
    """Tokens per second at each batch size, over enough questions to fill it twice."""
    speeds = {}
    for size in batch_sizes:
        asked = [questions[i % len(questions)] for i in range(max(2 * size, 4))]
        made = replace(config, batch_size=size)
        runs = [run(models, asked, made) for _ in range(repeats)]
        tokens = sum(len(answer.token_ids) for answer in runs[0][1])
        speeds[size] = tokens / statistics.median(seconds for seconds, _ in runs)
    return speeds


def by_gamma(models, questions, config: SafeConfig, repeats: int) -> dict[str, float]:
    """Seconds of forward passes for each kept token, for fixed lookaheads and the one that adapts."""
    replays, tokens = {}, {}
    for gamma in GAMMAS:
        recorder = Recorder()
        with recorder.on(models):
            _, answers = run(models, questions, replace(config, gamma=gamma))
        replays[str(gamma)] = partial(replay, recorder.passes)
        tokens[str(gamma)] = sum(len(answer.token_ids) for answer in answers)
    return {gamma: seconds / tokens[gamma] for gamma, seconds in medians(repeats, **replays).items()}


def keys(result: dict) -> dict:
    """The figures that the targets are about, under short names."""
    safe = result["methods"]["safe"]
    flat = {
        "actual_over_ideal": safe["ratio"],
        "greedy_over_generate": result["greedy"]["ratio"],
        "drafter_passes_per_token": safe["drafter_passes_per_token"],
        "memory_overhead": result["memory"]["over"],
        "tokens_per_second": {name: method["tokens_per_second"] for name, method in result["methods"].items()}
        | {"greedy": result["greedy"]["ours"], "generate": result["greedy"]["theirs"]},
    }
    if "growth" in result:
        first, *_, last = (result["growth"][length]["outside"] for length in GROWTH_LENGTHS)
        flat["outside_growth"] = last / first
    if costs := result.get("forward_seconds_per_token_by_gamma"):
        flat["auto_over_best_gamma"] = costs["auto"] / min(costs[str(g)] for g in GAMMAS if g != "auto")
    if "tokens_per_second_by_batch" in result:
        flat["tokens_per_second_by_batch"] = result["tokens_per_second_by_batch"]
    return flat


def table(result: dict) -> str:
    """The figures for a reader."""
    lines = [f"{'method':20}{'tokens/s':>10}{'actual/ideal':>14}{'drafts/token':>14}{'E/T':>8}"]
    for name, m in result["methods"].items():
        lines.append(
            f"{name:20}{m['tokens_per_second']:10.1f}{m['ratio']:14.3f}{m['drafter_passes_per_token']:14.3f}"
            f"{m['ensemble_rate']:8.1%}"
        )
    greedy = result["greedy"]
    lines.append(f"{'drafter, our loop':20}{greedy['ours']:10.1f}")
    lines.append(
        f"{'drafter, generate':20}{greedy['theirs']:10.1f}   ours/generate, time a token: {greedy['ratio']:.3f}"
    )
    seconds = result["methods"]["safe"]["seconds"]
    lines.append("seconds of safe: " + ", ".join(f"{part} {spent:.2f}" for part, spent in seconds.items()))
    lines.append(f"memory over weights and caches: {result['memory']['over']:.1%} of the weights")
    for length, spent in result.get("growth", {}).items():
        lines.append(f"at {length} tokens: {1e3 * spent['inside']:.2f} ms a token in passes, "
                     f"{1e3 * spent['outside']:.3f} ms outside")  # fmt: skip
    if costs := result.get("forward_seconds_per_token_by_gamma"):
        listed = ", ".join(f"{gamma} {1e3 * seconds:.2f}" for gamma, seconds in costs.items())
        lines.append(f"ms of forward passes a kept token, by gamma: {listed}")
    for size, speed in result.get("tokens_per_second_by_batch", {}).items():
        lines.append(f"batch of {size}: {speed:.1f} tokens/s")
    return "\n".join(lines)


def sizes(text: str) -> list[int]:
    """Comma-separated whole numbers."""
    return [int(size) for size in text.split(",")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, conflict_handler="resolve")
    add_model_flags(parser)
    add_data_flags(parser, ("gsm8k", "math500", "arc", "toy"))
    add_method_flags(parser)
    parser.add_argument("--batch_size", dest="batch_sizes", type=sizes, default=[1], help="comma-separated")
    parser.set_defaults(data_name="toy", limit=5, max_new_tokens=96)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--growth", action="store_true", help="also one answer of 3000 tokens")
    parser.add_argument("--gammas", action="store_true", help="also the cost of each lookahead, and of auto")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    args = parser.parse_args()
    named = models_of(args)
    models = load_models(named.paths, named.options)
    examples = load(args.data_name, args.data_path, limit=args.limit).examples
    questions = [user_message(args.data_name, example, None) for example in examples]
    slow = busy()
    result = measure(models, questions, config_of(args, len(models)), args)
    slow = max(slow, busy())
    print(table(result))
    if slow > BUSY:
        print(f"the machine was busy (fixed work took up to {slow:.1f} times its fastest): do not trust these figures")
    if args.json:
        figures = keys(result) | {"machine_busy": slow, "details": result}
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
