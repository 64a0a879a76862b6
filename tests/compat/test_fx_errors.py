"""torch.fx's errors for programs that cannot be traced and for invalid graphs."""

import subprocess
import sys

PROGRAM = """
import operator
import torch
from torch import fx, nn

def says(call):
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

says(lambda: fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x))
says(lambda: fx.symbolic_trace(lambda x: len(x)))
says(lambda: fx.symbolic_trace(lambda x: list(x)))
says(lambda: fx.symbolic_trace(lambda x: x + object()))
says(lambda: fx.wrap(3))
says(lambda: fx.wrap("len"))
graph = fx.Graph()
x = graph.placeholder("x")
y = graph.call_function(operator.neg, (x,))
graph.output(y)
says(lambda: graph.erase_node(x))
y.append(x)
says(graph.lint)
says(lambda: fx.Interpreter(fx.GraphModule(nn.Module(), fx.symbolic_trace(nn.ReLU()).graph)).run())
says(lambda: fx.Tracer().path_of_module(nn.ReLU()))
"""

EXPECTED = """\
TraceError: 'gt': expected no decision by a value, which a trace does not have
RuntimeError: 'x': expected no len() of it, unless torch.fx.wrap('len') makes it a node
TraceError: 'x': expected no loop over a value, whose length a trace does not know
NotImplementedError: create_arg: expected what a graph can hold, got object
RuntimeError: wrap: expected 'fn_or_name' to be a function or a name, got int
NotImplementedError: wrap: expected to be called by a module itself, got a call inside a function
RuntimeError: erase_node: expected 'x' to have no users, got neg
RuntimeError: lint: expected 'x' to come before 'neg', which uses it
RuntimeError: run: expected an argument for 'input', got none
NameError: path_of_module: expected a module of the root, got ReLU
"""


def test_errors():
    command = [sys.executable, "-m", "lamella.compat", "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == EXPECTED
