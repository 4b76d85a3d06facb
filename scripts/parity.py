#!/usr/bin/env python3
"""The same weights and data through annulet and through PyTorch: 20 steps of an mlp and of a gpt, with SGD and with AdamW.
Prints both programs' losses and the largest difference; fails where it exceeds 1e-5.

  parity.py [--ranks N] [--program build/annulet] [--mpiexec mpiexec]

Needs PyTorch (Debian: apt-get install python3-torch; run with /usr/bin/python3). It is optional: nothing else uses it.
"""
import argparse, json, math, os, pathlib, struct, subprocess, sys, tempfile

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("parity: PyTorch is not there (both programs are compared). Install python3-torch, or run nothing.")

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, TOLERANCE = 20, 1e-5


# --- what annulet reads: weights (safetensors), features and labels (IDX), text ---------------------------------------

def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_idx(path, kind, shape, data):
    path.write_bytes(struct.pack(">HBB", 0, kind, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + data)


# --- the counter-based generator by which annulet places its windows (Philox4x32-10; Salmon et al. 2011) --------------

def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        even, odd = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [odd >> 32 ^ c[1] ^ k[0], odd & 0xFFFFFFFF, even >> 32 ^ c[3] ^ k[1], even & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def below(seed, purpose, index, bound):
    name = 0xCBF29CE484222325
    for letter in purpose.encode():
        name = (name ^ letter) * 0x100000001B3 & (1 << 64) - 1
    low = lambda v: (v & 0xFFFFFFFF, v >> 32)
    words = philox([*low(index), *low(name)], low(seed))
    return (words[1] << 32 | words[0]) * bound >> 64


# --- models -----------------------------------------------------------------------------------------------------------

class Mlp:
    widths, batch = [20, 64, 48, 7], 32
    config = 'batch = 32\n[model]\nkind = "mlp"\nwidths = [20, 64, 48, 7]\nactivation = "gelu"\n'

    def __init__(self, folder):
        self.weights = {}
        for k, (inputs, outputs) in enumerate(zip(self.widths, self.widths[1:])):
            self.weights[f"layers.{k}.weight"] = torch.randn(outputs, inputs) / math.sqrt(inputs)
            self.weights[f"layers.{k}.bias"] = torch.randn(outputs) * 0.1
        self.x, self.y = torch.randn(STEPS * self.batch, 20), torch.randint(7, (STEPS * self.batch,))
        write_idx(folder / "x.idx", 0x0D, self.x.shape, self.x.numpy().astype(">f4").tobytes())
        write_idx(folder / "y.idx", 0x08, self.y.shape, self.y.numpy().astype("u1").tobytes())
        self.data = f'[data]\nkind = "idx"\nimages = "{folder}/x.idx"\nlabels = "{folder}/y.idx"\nshuffle = false\n'

    def loss(self, w, step):
        rows = slice(step * self.batch, (step + 1) * self.batch)
        h = self.x[rows]
        for k in range(3):
            h = F.linear(h, w[f"layers.{k}.weight"], w[f"layers.{k}.bias"])
            h = F.gelu(h) if k < 2 else h
        return F.cross_entropy(h, self.y[rows])


class Gpt:
    batch, context, layers, heads, width = 6, 16, 2, 4, 32
    config = ('batch = 6\n[model]\nkind = "gpt"\ncontext = 16\nlayers = 2\nheads = 4\nwidth = 32\ntied = true\nbias = true\n')

    def __init__(self, folder):
        text = bytes(97 + (i * i + 3 * i) % 26 for i in range(700))
        (folder / "text").write_bytes(text)
        symbols = sorted(set(text))
        self.tokens = torch.tensor([symbols.index(b) for b in text])
        self.data = f'[data]\nkind = "text"\ntext = "{folder}/text"\nvalidation = 0\n'
        c, w = self.width, {"wte.weight": (len(symbols), self.width), "wpe.weight": (self.context, self.width)}
        for k in range(self.layers):
            for name, rows, columns in [("attn.c_attn", 3 * c, c), ("attn.c_proj", c, c), ("mlp.c_fc", 4 * c, c), ("mlp.c_proj", c, 4 * c)]:
                w[f"h.{k}.{name}.weight"], w[f"h.{k}.{name}.bias"] = (rows, columns), (rows,)
            for name in ("ln_1", "ln_2"):
                w[f"h.{k}.{name}.weight"], w[f"h.{k}.{name}.bias"] = (c,), (c,)
        w["ln_f.weight"], w["ln_f.bias"] = (c,), (c,)
        self.weights = {n: torch.randn(s) * 0.1 + (1.0 if "ln_" in n and n.endswith("weight") else 0.0) for n, s in w.items()}

    def loss(self, w, step):
        starts = [below(1, "text.windows", step * self.batch + b, len(self.tokens) - self.context) for b in range(self.batch)]
        tokens = torch.stack([self.tokens[s:s + self.context] for s in starts])
        labels = torch.stack([self.tokens[s + 1:s + 1 + self.context] for s in starts])
        norm = lambda x, n: F.layer_norm(x, (self.width,), w[n + ".weight"], w[n + ".bias"])
        linear = lambda x, n: F.linear(x, w[n + ".weight"], w[n + ".bias"])
        future = torch.triu(torch.ones(self.context, self.context, dtype=torch.bool), 1)
        x = w["wte.weight"][tokens] + w["wpe.weight"]
        for k in range(self.layers):
            q, key, v = [t.view(self.batch, self.context, self.heads, -1).transpose(1, 2)
                         for t in linear(norm(x, f"h.{k}.ln_1"), f"h.{k}.attn.c_attn").split(self.width, 2)]
            scores = (q @ key.transpose(-2, -1) / math.sqrt(self.width // self.heads)).masked_fill(future, -math.inf)
            x = x + linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"h.{k}.attn.c_proj")
            x = x + linear(F.gelu(linear(norm(x, f"h.{k}.ln_2"), f"h.{k}.mlp.c_fc")), f"h.{k}.mlp.c_proj")
        return F.cross_entropy((norm(x, "ln_f") @ w["wte.weight"].T).flatten(0, 1), labels.flatten())


# --- both programs ----------------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": ('[optimizer]\nkind = "sgd"\nlr = 0.05\nmomentum = 0.9\n', lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)),
    "adamw": ('[optimizer]\nkind = "adamw"\nlr = 0.002\ndecay = 0.1\n', lambda p: torch.optim.AdamW(p, 0.002, weight_decay=0.1)),
}


def losses_of_pytorch(model, make_optimizer):
    weights = {name: value.clone().requires_grad_() for name, value in model.weights.items()}
    optimizer, losses = make_optimizer(list(weights.values())), []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(weights, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of_annulet(model, optimizer, folder, arguments):
    write_safetensors(folder / "init.safetensors", model.weights)
    (folder / "run.toml").write_text(f"steps = {STEPS}\nseed = 1\n" + model.config + model.data + optimizer)
    command = [arguments.program, "train", "--config", folder / "run.toml", "--init", folder / "init.safetensors",
               "--out", folder / "run", "--overwrite"]
    if arguments.ranks > 1:
        command = ["bash", ROOT / "scripts/mpirun.sh", arguments.mpiexec, str(arguments.ranks), "120", *command]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"parity: annulet failed:\n{done.stdout}")
    return [json.loads(line)["loss"] for line in (folder / "run/steps.jsonl").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--program", default=os.environ.get("ANNULET_BUILD", str(ROOT / "build")) + "/annulet")
    parser.add_argument("--mpiexec", default="mpiexec")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    worst = 0.0
    print(f"{'model':6} {'optimizer':10} {'first loss':>12} {'last: PyTorch':>14} {'annulet':>12} {'largest difference':>20}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in (Mlp(folder), Gpt(folder)):
            for optimizer, (config, make) in OPTIMIZERS.items():
                theirs, ours = losses_of_pytorch(model, make), losses_of_annulet(model, config, folder, arguments)
                difference = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
                worst = max(worst, difference) if difference == difference else math.inf
                print(f"{type(model).__name__.lower():6} {optimizer:10} {theirs[0]:12.7f} {theirs[-1]:14.7f} {ours[-1]:12.7f} {difference:20.1e}")
    if not worst <= TOLERANCE:
        sys.exit(f"parity: the losses differ by {worst:.1e}, more than {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
