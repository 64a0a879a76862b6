"""Grid samples, sums of bags, extremes of bool: loops against operators and PyTorch."""

import math

import pytest
from operator_cases import lamella, to_lamella, torch

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def same(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    got, expected = got.nan_to_num(nan=7e30), expected.detach().nan_to_num(nan=7e30)
    assert lamella.equal(got, expected)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 4)])
def test_grid_sample(mode, padding, align_corners, shape):
    how = dict(mode=mode, padding_mode=padding, align_corners=align_corners)
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(2)
        image, grid = torch.randn(2, 3, *shape, dtype=dtype), torch.randn(2, 9, 11, 2, dtype=dtype)
        grid[0, 0, 0], grid[0, 0, 1, 0], grid[1, 0, 0, 1] = float("nan"), 1e30, -float("inf")
        grid[1, 1, :2] = torch.tensor([[1, -1], [9, -13]])
        x, y = to_lamella(image), to_lamella(grid)
        got = lamella.nn.functional.grid_sample(x, y, **how)
        same(got, lamella.nn.functional.grid_sample(x.requires_grad_(), y, **how))
        # Where coordinates are not finite, PyTorch's results depend on the processor.
        expected = torch.nn.functional.grid_sample(image, grid, **how)
        numbers = torch.isfinite(grid).all(-1) & (grid.abs() < 1e9).all(-1)
        for n in range(2):
            found = torch.from_numpy(got[n].numpy())[:, numbers[n]]
            torch.testing.assert_close(found, expected[n][:, numbers[n]], rtol=1e-4, atol=2e-5)


def test_grid_sample_layouts():
    image, grid = lamella.randn(4, 3, 6, 5), lamella.randn(4, 2, 150, 2)
    sample = lamella.nn.functional.grid_sample
    expected = sample(image, grid, align_corners=False)
    channels_last = image.contiguous(memory_format=lamella.channels_last)
    same(sample(channels_last, grid, align_corners=False), expected)
    moved = grid.permute(3, 1, 2, 0).contiguous().permute(3, 1, 2, 0)
    same(sample(image, moved, align_corners=False), expected)
    each = lamella.vmap(lambda x, y: sample(x[None], y[None], align_corners=False)[0])
    same(each(image, grid), expected)
    assert sample(image, grid[:, :0], align_corners=False).shape == (4, 3, 0, 150)
    for none in (image[:0], image[:0].clone().requires_grad_()):
        assert sample(none, grid[:0], align_corners=False).shape == (0, 3, 2, 150)


@pytest.mark.parametrize("width", [1, 3, 16, 37])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag(mode, width):
    torch.manual_seed(3)
    for dtype in (torch.float32, torch.float64):
        table, index = torch.randn(20, width, dtype=dtype), torch.randint(20, (57,))
        bounds = torch.tensor([0, 0, 3, 3, 40, 57])
        for padding in (None, 4, -1):
            for last in (False, True):
                for weight in (None, torch.randn(57, dtype=dtype)) if mode == "sum" else (None,):
                    how = dict(mode=mode, padding_idx=padding, include_last_offset=last)
                    expected = torch.nn.functional.embedding_bag(
                        index, table, bounds, per_sample_weights=weight, **how
                    )
                    given = [to_lamella(t) for t in (index.int(), table, bounds)]
                    if weight is not None:
                        how["per_sample_weights"] = to_lamella(weight)
                    bag = lamella.nn.functional.embedding_bag
                    given[2] = given[2].int()
                    got = bag(*given, **how)
                    torch.testing.assert_close(torch.from_numpy(got.numpy()), expected)
                    given[1].requires_grad_()
                    same(got, bag(*given, **how))


def test_embedding_bag_returns_sizes():
    table, index = lamella.arange(8.0).reshape(4, 2), lamella.tensor([3, 1, 1, 0])
    starts = lamella.tensor([0, 1, 3])
    for weight in (table, table.clone().requires_grad_()):
        out, bag, sizes, _ = lamella.ops.aten._embedding_bag(weight, index, starts, padding_idx=1)
        assert out.tolist() == [[6, 7], [0, 0], [0, 1]]
        assert bag.tolist() == [0, 1, 1, 2] and sizes.tolist() == [1, 0, 1]


def test_embedding_bag_indices():
    table = lamella.ones(4, 2)
    for index in (4, -1):
        with pytest.raises(IndexError) as error:
            lamella.ops.aten._embedding_bag(table, lamella.tensor([0, index]), lamella.tensor([0]))
        text = f"_embedding_bag: index_select: expected 'index' in [0, 3], got {index}"
        assert str(error.value) == text


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_of_bool(name):
    a, b = torch.rand(77) > 0.5, torch.rand(77) > 0.5
    expected = getattr(torch, name)(a, b)
    for part in (slice(None), slice(3, 70, 2)):
        got = getattr(lamella, name)(to_lamella(a)[part], to_lamella(b)[part])
        assert got.dtype == lamella.bool and got.tolist() == expected[part].tolist()


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_infinite_pixels_reach_no_point_outside(mode, requires_grad):
    image = lamella.full((1, 1, 5, 5), 2.0)
    image[0, 0, 0, 0] = math.inf
    grid = lamella.tensor([[[[5.0, 5.0], [0.4, 0.4], [-5.0, 0.0]]]])
    image.requires_grad_(requires_grad)
    out = lamella.nn.functional.grid_sample(image, grid, mode=mode, align_corners=False)
    assert out.flatten().tolist() == pytest.approx([0.0, 2.0, 0.0])


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_rows_of_padding_may_be_nan(mode, requires_grad):
    table = lamella.tensor([[1.0, 2.0], [math.nan, math.inf], [3.0, 4.0]])
    table.requires_grad_(requires_grad)
    places, starts = lamella.tensor([0, 1, 2, 1]), lamella.tensor([0, 2])
    out = lamella.nn.functional.embedding_bag(places, table, starts, mode=mode, padding_idx=1)
    assert out.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    if requires_grad:
        out.sum().backward()
        assert table.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_places_that_are_not_finite(mode, padding, requires_grad):
    image = torch.arange(9.0).reshape(1, 1, 3, 3)
    places = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.3, -5.0]
    grid = torch.tensor([[[[x, y] for x in places for y in (0.0, 0.4)]]])

    def sample(m, image, grid):
        image = image.detach().clone().requires_grad_(requires_grad)
        return m.nn.functional.grid_sample(image, grid, mode, padding, align_corners=False)

    got = sample(lamella, to_lamella(image), to_lamella(grid)).flatten().tolist()
    expected = sample(torch, image, grid).flatten().tolist()
    assert got == pytest.approx(expected, rel=1e-5, nan_ok=True)
