"""lamella.PythonDispatcher, against PyTorch's over registrations of all kinds."""

import itertools

import pytest
from torch._python_dispatcher import PythonDispatcher as Theirs

import lamella

KEYS = ["CPU", "XLA", "AutogradCPU", "AutogradXLA", "AutogradOther", "Autograd"]


def rows(table):
    """Kernels by key; PyTorch's FPGA is of the kind that Vulkan is here."""
    lines = table.strip().splitlines()[3:]
    return {
        line.split()[0].replace("FPGA", "Vulkan"): " ".join(line.split()[1:]).replace(
            "fn_FPGA", "fn_Vulkan"
        )
        for line in lines
    }


def test_the_guides_example():
    dispatcher = lamella.PythonDispatcher()
    dispatcher.register(["CPU", "XLA", "AutogradCPU", "CompositeImplicitAutograd"])
    assert dispatcher.dispatchTable() == (
        "\nComputed Dispatch Table\n"
        "key             kernel\n"
        "---------------------------\n"
        "Vulkan          fn_CompositeImplicitAutograd [math kernel]\n"
        "AutogradOther   fn_CompositeImplicitAutograd [math kernel]\n"
        "CPU             fn_CPU [kernel]\n"
        "XLA             fn_XLA [kernel]\n"
        "Lazy            fn_CompositeImplicitAutograd [math kernel]\n"
        "AutogradCPU     fn_AutogradCPU [kernel]\n"
        "AutogradXLA     [backend fallback]\n"
        "AutogradLazy    fn_CompositeImplicitAutograd [math kernel]\n"
    )
    assert dispatcher.registrations() == (
        "\nRegistered Kernels\n"
        "key             kernel\n"
        "---------------------------\n"
        "CPU             fn_CPU\n"
        "XLA             fn_XLA\n"
        "AutogradCPU     fn_AutogradCPU\n"
        "CompositeImplicitAutograd[alias] fn_CompositeImplicitAutograd\n"
    )


def test_raw_tables():
    dispatcher = lamella.PythonDispatcher()
    dispatcher.register(["CPU", "Autograd"])
    text = dispatcher.rawRegistrations()
    assert text.startswith("name: __test__::foo")
    assert "(Tensor x) -> Tensor\n" in text
    assert "\nCPU: fn_CPU :: registered at " in text and "\nAutograd[alias]: fn_Autograd" in text
    table = dispatcher.rawDispatchTable().splitlines()
    assert (
        "CPU: fn_CPU [kernel]" in table and "AutogradCUDA: fn_Autograd [autograd kernel]" in table
    )
    assert not any(line.startswith("CUDA:") for line in table)


@pytest.mark.parametrize(
    "composite", [(), ("CompositeImplicitAutograd",), ("CompositeExplicitAutograd",)]
)
def test_tables_are_pytorchs(composite):
    for count in range(4):
        for chosen in itertools.combinations([*KEYS, "Vulkan"], count):
            keys = [*chosen, *composite]
            ours, theirs = lamella.PythonDispatcher(), Theirs()
            ours.register(keys)
            theirs.register([key.replace("Vulkan", "FPGA") for key in keys])
            expected = rows(theirs.dispatchTable())
            assert rows(ours.dispatchTable()) == expected, keys
            del ours, theirs


def test_keys():
    theirs = [key.replace("FPGA", "Vulkan") for key in Theirs().keys()]
    assert lamella.PythonDispatcher().keys() == theirs


@pytest.mark.parametrize(
    "keys, text",
    [
        (["CPU", "CPU"], "register: expected each key once, got CPU again"),
        (["CompositeImplicitAutograd", "CompositeExplicitAutograd"],
         "register: expected one of CompositeImplicitAutograd and CompositeExplicitAutograd, "
         "got both"),
        (["Nowhere"],
         "register: expected a key of CPU, AutogradCPU, Vulkan, AutogradOther, XLA, "
         "AutogradXLA, Lazy, AutogradLazy, CompositeExplicitAutograd, Autograd, "
         "CompositeImplicitAutograd, " "got 'Nowhere'"),
    ],
)  # fmt: skip
def test_refusals_are_pytorchs(keys, text):
    with pytest.raises(RuntimeError) as caught:
        lamella.PythonDispatcher().register(keys)
    assert str(caught.value) == text
    with pytest.raises(RuntimeError):
        Theirs().register(keys)
