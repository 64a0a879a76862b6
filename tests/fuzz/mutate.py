"""Fuzzes Python's readers of user files with mutated files.

    python tests/fuzz/mutate.py [--seed N] [--runs N | --seconds N] [TARGET ...]

Each target writes a valid file, changes its bytes (with the edits of
tests/fuzz/parsers/driver.cpp), and reads it. Reading returns a value or raises one of the reader's
documented errors; another exception, a crash or 20 seconds without an answer is a finding, whose
input is kept.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
import zipfile

import hlo_seeds

import lamella
from lamella import hlo
from lamella._graph import Graph
from lamella.hlo import _bundle, _npy

NUMBERS = [0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**32, 2**58, 2**61 + 1, 2**63 - 1, 2**63]
NUMBERS += [2**64, -(2**63), 1e308]
WORDS = [b"null", b"true", b'"', b"[[[[[[[[", b"{", b"}", b"\\ud800", b"\xff", b"\x00", b"1e400"]


def mutated(data: bytes, rng: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(text) + 1)
        length = rng.randint(1, 64 if rng.random() < 0.25 else 8)
        kind = rng.randrange(8)
        if kind == 0 and at < len(text):
            text[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(text):
            text[at] = rng.randrange(256)
        elif kind == 2:
            del text[at : at + length]
        elif kind == 3:
            start = rng.randrange(len(text) + 1)
            text[at:at] = text[start : start + length]
        elif kind == 4:
            text[at:at] = rng.choice(WORDS)
        elif kind == 5:  # another number in place of one
            end = start = next((i for i in range(at, len(text)) if 48 <= text[i] < 58), len(text))
            while end < len(text) and 48 <= text[end] < 58:
                end += 1
            text[start:end] = str(rng.choice(NUMBERS)).encode()
        elif kind == 6 and len(text) >= 8:
            start = rng.randrange(len(text) - 7)
            number = int(rng.choice(NUMBERS[:-1])) % 2**64
            text[start : start + 8] = number.to_bytes(8, "little")
        else:
            text[at:at] = bytes([text[at - 1] if text else 40]) * rng.randrange(200)
    return bytes(text)


# ---- Targets: what is written once, and what reads it ------------------------------------------


class SafeTensors:
    name = "x.safetensors"
    # What begins as an archive does is read as one.
    errors = (ValueError, OSError, pickle.UnpicklingError)

    def write(self, path):
        tensors = {
            "a": lamella.arange(6.0).reshape(2, 3),
            "b": lamella.zeros(0, 2),
            "c/d": lamella.ones(3),
        }
        lamella.save({"n": tensors, "lr": 0.1, "steps": [1, (2, None)]}, path)

    def dress(self, data, rng):
        """Half of them with the length of the header put right."""
        end = data.rfind(b"}") + 1
        if rng.random() < 0.5 or end < 9:
            return data
        return (end - 8).to_bytes(8, "little") + data[8:]

    def read(self, path):
        def touch(value):
            if isinstance(value, lamella.Tensor):
                value.clone()
            elif isinstance(value, dict):
                [touch(one) for one in value.values()]
            elif isinstance(value, (list, tuple)):
                [touch(one) for one in value]

        touch(lamella.load(path))
        touch(lamella.load_file(path))


class TracedGraph:
    name = "x.graph"
    # A graph of operators that are not there, or have changed, is a RuntimeError.
    errors = (ValueError, RuntimeError, OSError)

    def dress(self, data, rng):
        """Most of them as an archive that is whole, of a damaged description."""
        if rng.random() < 0.2:
            return mutated(self.whole, rng)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("graph.json", data)
            archive.writestr("tensors.safetensors", self.tensors)
        return made.getvalue()

    def write(self, path):
        w = lamella.arange(6.0).reshape(2, 3)
        lamella.trace(lambda x: (x @ w).relu().sum(0), lamella.ones(4, 2)).save(path)
        with open(path, "rb") as file:
            self.whole = file.read()
        with zipfile.ZipFile(path) as archive:
            self.tensors = archive.read("tensors.safetensors")
            self.seed = archive.read("graph.json")

    def read(self, path):
        Graph.load(path)


class Array:
    name = "x.npy"
    errors = (ValueError, OSError)

    def write(self, path):
        _npy.save(path, lamella.arange(12.0).reshape(3, 4))

    def read(self, path):
        _npy.load(path, "f32").clone()


class Bundle:
    name = "bundle.json"
    errors = (ValueError,)

    def write(self, path):
        target = {"name": "t", "platform": "Host", "kind": "plain"}
        target["places"] = {"execute": ["/nowhere/lib.so", 16], "prepare": None}
        python = {"name": "p", "platform": "Host", "kind": "python", "python": ["m", "f", None]}
        python["places"] = {}
        facts = {"format": 1, "stage": "run", "options": {"platform": "Host"}, "inputs": 1}
        facts.update(targets=[target, python], error={"type": "E", "text": "t"}, versions={})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(facts, file)

    def read(self, path):
        for entry in _bundle.code_of(_bundle.read(os.path.dirname(path))):
            _bundle.describe(entry)


class Program:
    name = "x.hlo"
    errors = (RuntimeError, OSError, UnicodeDecodeError, MemoryError)

    def write(self, path):
        text = "HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  z = f32[] constant(0)\n"
        text += "  ROOT p = f32[9] pad(x, z), padding=1_1_2\n}\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        module = hlo.load(path)
        shapes = [one.shape for one in module.entry.instructions]
        if all(shape.is_array and shape.elements < 1 << 20 for shape in shapes):
            given = [lamella.zeros(list(p.shape.dimensions)) for p in module.entry.parameters]
            hlo.compile(module)(*given)


class Text:
    """A program's text: parsed with and without verification, printed, verified, compared, drawn.
    Calls with missing operands and attributes must be refused by the verifier and drawn anyway."""

    name = "x.hlo"
    errors = (RuntimeError, UnicodeDecodeError)

    def write(self, path):
        self.texts = hlo_seeds.texts()
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.texts[0])

    def dress(self, data, rng):
        text = rng.choice(self.texts)
        if rng.random() < 0.7:
            return hlo_seeds.changed(text, rng).encode()
        return mutated(text.encode(), rng)

    def read(self, path):
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
        try:
            parsed = hlo.parse(text, verify=False)
        except RuntimeError:
            parsed = None
        if parsed is not None:
            printed = str(parsed)
            assert str(hlo.parse(printed, verify=False)) == printed, "prints what differs when read"
            assert parsed.diff(parsed) == "", "differs from itself"
            repr(parsed), parsed.to_string(percent=True, operand_shapes=True)
            parsed.to_dot(), parsed.to_html(), parsed.to_json()
            try:
                parsed.verify()
            except RuntimeError as error:
                assert str(error).startswith("hlo: "), error
        hlo.parse(text).to_html()


KINDS = (SafeTensors, TracedGraph, Array, Bundle, Program, Text)
TARGETS = {kind.__name__: kind for kind in KINDS}


def run(name: str, seed: int, runs: int, seconds: float) -> int:
    """Gives the number of inputs read; exits at a finding."""
    target = TARGETS[name]()
    rng = random.Random(f"{seed} {name}")
    folder = tempfile.mkdtemp(prefix="lamella-mutate-")
    path = os.path.join(folder, target.name)
    kept = f"crash-{name}-{seed}"
    target.write(path)
    target.read(path)
    with open(path, "rb") as file:
        good = getattr(target, "seed", None) or file.read()
    dress = getattr(target, "dress", lambda data, rng: data)
    started, done = time.monotonic(), 0
    while time.monotonic() - started < seconds if seconds else done < runs:
        data = dress(mutated(good, rng), rng)
        # Another file, since the one before may be mapped still.
        os.remove(path)
        with open(path, "wb") as file:
            file.write(data)
        faulthandler.dump_traceback_later(20, exit=True)
        try:
            target.read(path)
        except target.errors:
            pass
        except BaseException:
            shutil.copy(path, kept)
            print(f"{name}: the input is kept as {kept}", file=sys.stderr)
            raise
        done += 1
    faulthandler.cancel_dump_traceback_later()
    shutil.rmtree(folder)
    return done


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    options = parser.parse_args()
    faulthandler.enable()
    os.environ["LAMELLA_BUNDLES"] = "off"
    # Memory that a file asks for and does not have is refused before it is given.
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    for name in options.targets or TARGETS:
        done = run(name, options.seed, options.runs, options.seconds)
        print(f"{name}: {done} inputs of seed {options.seed}, no findings", flush=True)


if __name__ == "__main__":
    main()
