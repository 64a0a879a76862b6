"""Every composite operator keeps to the rules of composite kernels (lamella.testing)."""

import warnings

import pytest

import lamella
from lamella.testing import check_composite_compliance, composite_check

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import op_db  # noqa: E402
import op_db_mirror  # noqa: E402
import op_db_sample  # noqa: E402


def run(function, call):
    first, args, kwargs = op_db_mirror.to_lamella(call)
    lamella.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op_db_mirror.tensors_in([function(first, *args, **kwargs)], lamella.Tensor)


@pytest.mark.parametrize("entry", op_db.PRESENT, ids=lambda entry: entry.name)
def test_operator_complies(entry):
    """With the check on, results are the same and no composite kernel fails."""
    function = entry.function()
    ran = False
    problem = None
    for call in entry.calls():
        try:
            expected = run(function, call)
        except Exception:  # what a sample needs and Lamella has not: test_op_db_gradients.py
            continue
        ran = True
        try:
            with composite_check():
                got = run(function, call)
        except RuntimeError as error:
            assert "expected its composite kernel not to read elements" in str(error)
            problem = str(error)
            continue
        for mine, plain in zip(got, expected):
            if entry.has_values:
                op_db_sample.same(mine, op_db_mirror.to_torch(plain), entry.name)
    entry.hold("composite", problem)
    entry.require_compared("composite", ran)


def test_kernels_in_python():
    library = lamella.library.Library("complied", "DEF")
    library.define("good(Tensor x) -> Tensor")
    library.impl("good", lambda x: (x * 2).sum(0), "CompositeImplicitAutograd")
    library.define("reads(Tensor x) -> Tensor")
    library.impl("reads", lambda x: x * x.sum().item(), "CompositeImplicitAutograd")
    x = lamella.ones(2, 3)
    assert check_composite_compliance(lamella.ops.complied.good, (x,)).tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(RuntimeError) as error:
        check_composite_compliance(lamella.ops.complied.reads, (x,))
    assert str(error.value) == (
        "complied::reads: expected its composite kernel only to call operators, but it read or "
        "wrote the elements of the result of aten::sum.dim_IntList"
    )
    library.close()


def test_off_again():
    with composite_check(), composite_check():
        pass
    library = lamella.library.Library("complied_off", "DEF")
    library.define("reads(Tensor x) -> Tensor")
    library.impl("reads", lambda x: x * x.sum().item(), "CompositeImplicitAutograd")
    assert lamella.ops.complied_off.reads(lamella.ones(2)).tolist() == [2.0, 2.0]
    library.close()
