#!/usr/bin/env python3
"""Train, export and sample the demo model: a small Llama on the stories of demo_corpus.py.

The network is llama2.c's: RMSNorm (eps 1e-5), rotary embedding on interleaved pairs, grouped-query attention (query head h
reads key and value head h // (n_heads / n_kv_heads)), SwiGLU, classifier tied to the embedding. The checkpoint is llama2.c's
legacy file: seven int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len), then float32 tensors, each kind
for all layers before the next kind: embedding, attention norms, wq, wk, wv, wo, ffn norms, w1, w2, w3, final norm, and
seq_len * head_size zeros where the format has unused rotary tables.

Every row of a batch is a window of seq_len tokens that starts with a story's BOS; BOS also ends a story, so that a generation
that stops at BOS stops at a story's end. So short a training does not find out by itself that a name can be looked up in what
was told before (2000 steps of a run without drills: names changed from sentence to sentence); it does so within 150 steps on drills:
sentences of the stories, all told of one name. Hence the first --drill steps, and the name weight until the rate falls.
One thread and fixed seeds: the same machine and libraries give the same file, also over a stop and a restart with --state.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import struct
import sys
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# isort: split
import demo_corpus
import demo_tokenizer
from demo_tokenizer import BOS, Tokenizer

NAMES = demo_corpus.NAMES_HE + demo_corpus.NAMES_SHE
NAME = re.compile(rf"\b({'|'.join(NAMES)})\b")
BLOCK = 64  # queries of one attention block
FOLDER = Path(__file__).resolve().parent / "demo"


@dataclass(frozen=True)
class Config:
    """The seven header integers, in file order."""

    dim: int = 96
    hidden_dim: int = 224
    n_layers: int = 4
    n_heads: int = 6
    n_kv_heads: int = 3
    vocab_size: int = 1024
    seq_len: int = 256

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.dim // self.n_heads


def rope_tables(config: Config) -> tuple[Tensor, Tensor]:
    """cos and sin of pos * 10000^(-2i / head_size): each [seq_len, 1, head_size / 2]."""
    freq = 1.0 / 10000.0 ** (torch.arange(0, config.head_size, 2).float() / config.head_size)
    angle = torch.outer(torch.arange(config.seq_len).float(), freq).unsqueeze(1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (2i, 2i + 1) of x [batch, time, heads, head_size]; cos and sin [time, 1, head_size / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Norm(nn.Module):
    """RMSNorm over the last dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., dim] -> [..., dim]."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        kv_dim = config.n_kv_heads * config.head_size
        self.att_norm, self.ffn_norm = Norm(config.dim), Norm(config.dim)
        self.wq = nn.Linear(config.dim, config.dim, bias=False)
        self.wk = nn.Linear(config.dim, kv_dim, bias=False)
        self.wv = nn.Linear(config.dim, kv_dim, bias=False)
        self.wo = nn.Linear(config.dim, config.dim, bias=False)
        self.w1 = nn.Linear(config.dim, config.hidden_dim, bias=False)
        self.w2 = nn.Linear(config.hidden_dim, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden_dim, bias=False)

    def attention(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """x [batch, time, dim] -> [batch, time, dim]; mask [time, time] is added to the scores."""
        c, (batch, time_, _) = self.config, x.shape
        q = rotate(self.wq(x).view(batch, time_, c.n_heads, c.head_size), cos, sin) / math.sqrt(c.head_size)
        k = rotate(self.wk(x).view(batch, time_, c.n_kv_heads, c.head_size), cos, sin)
        v = self.wv(x).view(batch, time_, c.n_kv_heads, c.head_size)
        group = c.n_heads // c.n_kv_heads
        q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
        parts = []
        for start in range(0, time_, BLOCK):  # keys behind the block's end are masked for all its queries: not computed at all
            end = min(start + BLOCK, time_)
            scores = q[:, :, start:end] @ k[:, :, :end].transpose(2, 3) + mask[start:end, :end]
            parts.append(scores.softmax(-1) @ v[:, :, :end])
        return self.wo(torch.cat(parts, 2).transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """x [batch, time, dim] -> [batch, time, dim]."""
        x = x + self.attention(self.att_norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Llama(nn.Module):
    """The whole network."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.norm = Norm(config.dim)
        self.cos, self.sin = rope_tables(config)
        self.mask = torch.full((config.seq_len, config.seq_len), -math.inf).triu(1)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                shrink = math.sqrt(2 * config.n_layers) if name.endswith(("wo.weight", "w2.weight")) else 1.0
                nn.init.normal_(parameter, std=config.dim**-0.5 / shrink)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens [batch, time] -> logits [batch, time, vocab_size]."""
        time_ = tokens.shape[1]
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos[:time_], self.sin[:time_], self.mask[:time_, :time_])
        return F.linear(self.norm(x), self.embedding.weight)

    def in_file_order(self) -> list[Tensor]:
        """All weights, in the order of the checkpoint file."""
        kinds = [[layer.att_norm for layer in self.layers]]
        kinds += [
            [getattr(layer, kind) for layer in self.layers] for kind in ("wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3")
        ]
        return [self.embedding.weight] + [module.weight for kind in kinds for module in kind] + [self.norm.weight]


def export(model: Llama, path: Path) -> None:
    """Write the legacy checkpoint; a positive vocab_size says that the classifier is the embedding."""
    flat = torch.cat([weight.detach().reshape(-1) for weight in model.in_file_order()])
    tables = bytes(4 * model.config.seq_len * model.config.head_size)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(struct.pack("<7i", *astuple(model.config)) + flat.numpy().astype("<f4").tobytes() + tables)
    temporary.replace(path)


def load(path: Path) -> Llama:
    """Read a legacy checkpoint with a tied classifier."""
    data = path.read_bytes()
    model = Llama(Config(*struct.unpack_from("<7i", data)))
    flat = torch.frombuffer(bytearray(data), dtype=torch.float32, offset=28)
    at = 0
    with torch.no_grad():
        for weight in model.in_file_order():
            weight.copy_(flat[at : at + weight.numel()].view_as(weight))
            at += weight.numel()
    if flat.numel() != at + model.config.seq_len * model.config.head_size:
        raise ValueError(f"{path}: the size does not fit its header")
    return model.eval()


def windows(stories: list[list[int]], length: int) -> Tensor:
    """[stories, length]: from every story's BOS on, `length` tokens of the endless row of stories."""
    stream: list[int] = []
    starts = []
    for story in stories:
        starts.append(len(stream))
        stream += story
    flat = torch.tensor(stream + stream[:length], dtype=torch.long)
    return torch.stack([flat[start : start + length] for start in starts])


@torch.no_grad()
def loss_of(model: Llama, rows: Tensor, batch: int) -> float:
    """Mean cross entropy in nats a token over all rows [rows, length]."""
    losses = [
        F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()).item() * len(part) for part in rows.split(batch)
    ]
    return sum(losses) / len(rows)


def rate(step: int, args: argparse.Namespace) -> float:
    """Learning rate: linear warm-up, the peak, and in the last --decay steps linearly down to nearly nothing."""
    return args.lr * min(1.0, (step + 1) / args.warmup, (args.steps - step) / args.decay)


def prepare(args: argparse.Namespace, config: Config) -> tuple[Tensor, Tensor, Tensor, Tokenizer]:
    """Write the tokenizer; return training, held-out and drill rows, each [rows, seq_len + 1], and the tokenizer."""
    texts = demo_corpus.stories(args.stories + args.held_out, args.seed)
    held, kept = texts[: args.held_out], texts[args.held_out :]
    names = "\n".join(NAMES * 2000)  # so many that a name at the start of a paragraph, with no space before it, is one piece too
    demo_tokenizer.write(args.out / "demo_tokenizer.bin", demo_tokenizer.train("\n\n".join([*kept, names]), config.vocab_size))
    tokenizer = Tokenizer(demo_tokenizer.read(args.out / "demo_tokenizer.bin"))
    rows = []
    for part in (kept, held):
        ids = [story for story in map(tokenizer.encode_corpus, part) if len(story) < config.seq_len - 4]
        print(f"{len(ids)} stories of {len(part)}, {sum(map(len, ids))} tokens", flush=True)
        rows.append(windows(ids, config.seq_len + 1))
    for text in held[:20]:
        if tokenizer.encode(text.encode()) != tokenizer.encode_corpus(text):
            raise AssertionError("the fast encoder differs from the reference's")
    return rows[0], rows[1], drills(kept, tokenizer, config.seq_len + 1, args.seed), tokenizer


def name_ids(tokenizer: Tokenizer) -> list[int]:
    """The pieces that are names of the corpus, with and without a space before them."""
    spelled = [tokenizer.encode_corpus(lead + name) for name in NAMES for lead in ("", "\n")]
    return [ids[-1] for ids in spelled]


def drills(texts: list[str], tokenizer: Tokenizer, length: int, seed: int) -> Tensor:
    """[texts, length]: every row is sentences drawn from all stories, all told of one name, so that it teaches to look names up."""
    rng = random.Random(seed)
    sentences = [s for text in texts for s in re.split(r"(?<=\.) |\n", text) if len(s) < 80 and len(set(NAME.findall(s))) == 1]
    rows = []
    for _ in texts:
        name = rng.choice(NAMES)
        told = "".join(rng.choice((" ", " ", " ", "\n")) + NAME.sub(name, rng.choice(sentences)) for _ in range(length // 5))
        rows.append(tokenizer.encode_corpus(told.strip())[:length])
    return torch.tensor(rows, dtype=torch.long)


def make_optimizer(model: Llama, args: argparse.Namespace) -> torch.optim.Optimizer:
    """AdamW; norms do not decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": args.weight_decay},
        {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95))


def train_step(model: Llama, optimizer: torch.optim.Optimizer, batch: Tensor, weight: Tensor, lr: float) -> Tensor:
    """One step on batch [rows, seq_len + 1] with a weight for each token [vocab_size]; returns all losses, [rows * seq_len]."""
    for group in optimizer.param_groups:
        group["lr"] = lr
    target = batch[:, 1:].flatten()
    losses = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), target, reduction="none")
    optimizer.zero_grad()
    (losses @ weight[target] / len(losses)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return losses.detach()


def batch_of(step: int, rows: Tensor, args: argparse.Namespace) -> Tensor:
    """The rows of one step; every epoch has its own order, a function of seed and epoch alone. Until --short, rows come in quarters."""
    steps = len(rows) // args.batch
    generator = torch.Generator().manual_seed(args.seed * 1000 + step // steps)
    at = step % steps * args.batch
    batch = rows[torch.randperm(len(rows), generator=generator)[at : at + args.batch]]
    return batch[:, 1:].reshape(4 * len(batch), -1) if step < args.short else batch


def save_state(model: Llama, optimizer: torch.optim.Optimizer, step: int, path: Path) -> None:
    """Write all that --state needs to go on; a stop in the middle leaves the file of before."""
    temporary = path.with_suffix(".tmp")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, temporary)
    temporary.replace(path)


def train(args: argparse.Namespace) -> None:
    """Train, from scratch or from a saved state; export now and then, and at the end."""
    torch.manual_seed(args.seed)
    config = Config()
    args.out.mkdir(parents=True, exist_ok=True)
    rows, held, drilled, tokenizer = prepare(args, config)
    model = Llama(config)
    optimizer = make_optimizer(model, args)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    first = 0
    if args.state and args.state.exists():
        state = torch.load(args.state)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    weight, is_name = torch.ones(config.vocab_size), torch.zeros(config.vocab_size, dtype=torch.bool)
    is_name[name_ids(tokenizer)] = True
    begin, total = time.time(), torch.zeros(4)
    for step in range(first, args.steps):
        batch = batch_of(step, drilled if step < args.drill else rows, args)
        weight[is_name] = args.name_weight if step < args.steps - args.decay else 1.0
        losses = train_step(model, optimizer, batch, weight, rate(step, args))
        named = is_name[batch[:, 1:].flatten()]
        total += torch.tensor([losses.sum(), losses.numel(), losses[named].sum(), named.sum()])
        if (step + 1) % args.report == 0:
            print(
                f"step {step + 1}  loss {total[0] / total[1]:.4f}  names {total[2] / total[3]:.4f}  {time.time() - begin:.0f} s",
                flush=True,
            )
            total.zero_()
        if (step + 1) % args.save == 0 or step + 1 == args.steps:
            export(model, args.out / "demo.bin")
            print(f"step {step + 1}  held-out loss {loss_of(model, held, args.batch):.4f}", flush=True)
            if args.state:
                save_state(model, optimizer, step + 1, args.state)


@torch.no_grad()
def sample(args: argparse.Namespace) -> None:
    """Print one story: temperature 0 is greedy; otherwise top-p sampling with torch's generator (not the engine's coins)."""
    model = load(args.out / "demo.bin")
    tokenizer = Tokenizer(demo_tokenizer.read(args.out / "demo_tokenizer.bin"))
    torch.manual_seed(args.seed)
    ids = tokenizer.encode(args.prompt.encode())
    while len(ids) < model.config.seq_len:
        logits = model(torch.tensor([ids]))[0, -1]
        token = int(logits.argmax()) if args.temperature == 0 else draw(logits / args.temperature, args.top_p)
        if token == BOS:
            break
        ids.append(token)
    print(tokenizer.decode(ids).decode(errors="replace"))
    print(f"[{len(ids)} tokens{'' if len(ids) < model.config.seq_len else ', context full'}]")


def draw(logits: Tensor, top_p: float) -> int:
    """Draw from the smallest set of tokens whose probability exceeds top_p; logits [vocab_size]."""
    probability, index = logits.softmax(-1).sort(descending=True)
    probability[probability.cumsum(0) - probability > top_p] = 0
    return int(index[torch.multinomial(probability, 1)])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Train the demo model, or print a story of it with --sample.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of demo.bin and demo_tokenizer.bin (default %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of corpus, weights and order, or of the sample (default %(default)s)"
    )
    parser.add_argument("--stories", type=int, default=12000, help="stories to train on (default %(default)s)")
    parser.add_argument("--held-out", type=int, default=200, help="stories kept aside to measure the loss (default %(default)s)")
    parser.add_argument("--steps", type=int, default=2350, help="optimizer steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="rows of 256 tokens a step (default %(default)s)")
    parser.add_argument("--lr", type=float, default=3e-3, help="peak learning rate (default %(default)s)")
    parser.add_argument("--warmup", type=int, default=100, help="steps of warm-up (default %(default)s)")
    parser.add_argument("--decay", type=int, default=350, help="last steps, in which the rate falls (default %(default)s)")
    parser.add_argument("--state", type=Path, help="file to keep the whole training state in; where it exists, go on from it")
    parser.add_argument(
        "--name-weight", type=float, default=3.0, help="weight of a name's loss before the last --decay steps (default %(default)s)"
    )
    parser.add_argument("--drill", type=int, default=300, help="first steps, on sentences about one name (default %(default)s)")
    parser.add_argument("--short", type=int, default=800, help="first steps, on quarters of rows (default %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.05, help="AdamW weight decay (default %(default)s)")
    parser.add_argument("--report", type=int, default=100, help="steps between loss lines (default %(default)s)")
    parser.add_argument("--save", type=int, default=500, help="steps between exports (default %(default)s)")
    parser.add_argument("--sample", action="store_true", help="print one story instead of training")
    parser.add_argument("--prompt", default="", help="beginning of the sampled story")
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="temperature of the sample, 0 for greedy (default %(default)s)"
    )
    parser.add_argument("--top-p", type=float, default=0.9, help="top-p of the sample (default %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # several times faster: far apart tokens have tiny attention weights
    sample(args) if args.sample else train(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
