"""tensor[key] and tensor[key] = value, against NumPy."""

import warnings

import pytest

import lamella

np = pytest.importorskip("numpy")

BASE = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype("float32")
MASK = BASE[:, :, 0, 0] % 3 == 0

KEYS = [
    0,
    -1,
    (1, 2),
    (1, -1, 0, 3),
    slice(None),
    slice(1, 2),
    slice(None, None, 2),
    slice(-1, None),
    slice(5, 9),
    slice(2, 1),
    slice(-100, 100),
    (slice(None), slice(1, None), slice(None, -1)),
    (slice(0, 1), 2, slice(None, None, 3)),
    ...,
    (..., 1),
    (0, ..., slice(1, 3)),
    (..., slice(None)),
    None,
    (None, 0, None, slice(1, 2), None),
    (..., None),
    (),
    [0, 1],
    ([1, 0],),
    (slice(None), [2, 0]),
    ([0, 1], [2, 0]),
    ([[0, 1], [1, 0]], slice(None), [1]),
    (slice(None), [0, 2], slice(None), [1, 3]),
    (0, [1, 2], slice(1, 3), [0, 4]),
    (..., [1, 2], None),
    True,
    False,
    (np.array([True, False]),),
    (slice(None), np.array([True, False, True])),
    MASK,
    (MASK, 1),
    (MASK, slice(1, 3)),
    (MASK, slice(1, 3), [0, 1, 2, 3][:1]),
    (0, MASK[0]),
    np.array([0, 1, 0]),
    (np.array(1), slice(None)),
    np.int64(1),
    (np.array([[0], [1]]), np.array([0, 2])),
    range(2),
    BASE > 50,
]


def to_lamella(key):
    if isinstance(key, tuple):
        return tuple(to_lamella(item) for item in key)
    if isinstance(key, np.ndarray):
        return lamella.tensor(key)
    return key


@pytest.mark.parametrize("convert", [lambda key: key, to_lamella], ids=["arrays", "tensors"])
@pytest.mark.parametrize("key", KEYS, ids=[str(i) for i in range(len(KEYS))])
def test_get(key, convert):
    expected = BASE[key if not isinstance(key, range) else list(key)]
    got = lamella.from_numpy(BASE.copy())[convert(key)]
    assert tuple(got.shape) == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=[str(i) for i in range(len(KEYS))])
def test_set(key):
    plain = key if not isinstance(key, range) else list(key)
    for value in (7.5, np.float32(3), "array", "list"):
        expected = BASE.copy()
        got = lamella.from_numpy(BASE.copy())
        if value == "array":
            value = -np.arange(expected[plain].size, dtype="float32").reshape(expected[plain].shape)
            got[key] = lamella.tensor(value)
        elif value == "list":
            value = [4.0]
            if expected[plain].ndim == 0:
                value = 4.0
            got[key] = value
        else:
            got[key] = value
        expected[plain] = value
        np.testing.assert_array_equal(got.numpy(), expected)


def test_basic_keys_are_views():
    x = lamella.from_numpy(BASE.copy())
    for key in (0, slice(1, 2), ..., None, (0, slice(None), 1), slice(None), ()):
        y = x[key]
        assert y is not x and y.untyped_storage() is x.untyped_storage()
    x[0][1] = -1
    assert (x.numpy()[0, 1] == -1).all()


def test_assignment_drops_leading_ones():
    x = lamella.tensor([[1.0, 2.0], [3.0, 4.0]])
    x[0] = lamella.tensor([[[5.0, 6.0]]])
    x[1] = lamella.tensor([7])
    assert x.tolist() == [[5.0, 6.0], [7.0, 7.0]]
    x[[0, 1], [1, 0]] = lamella.tensor([[8.0, 9.0]])
    assert x.tolist() == [[5.0, 8.0], [9.0, 7.0]]


def test_assignment_of_another_dtype():
    x = lamella.tensor([1.0, 2.0, 3.0])
    mask = x > 1
    x[0] = lamella.tensor(4)
    x[1:] = lamella.tensor([5, 6])
    x[mask] = lamella.tensor(7)
    x[[0]] = 8
    assert x.tolist() == [8.0, 7.0, 7.0]
    for key in (mask, [1, 2], lamella.tensor([1, 2])):
        with pytest.raises(RuntimeError, match="^index_put_: expected 'values' to be float32, got"):
            x[key] = lamella.tensor([9, 9])
    assert x.tolist() == [8.0, 7.0, 7.0]


def test_augmented_assignment():
    x = lamella.tensor([1.0, 2.0, 3.0])
    x[1:] += 10
    x[0] *= 3
    assert x.tolist() == [3.0, 12.0, 13.0]


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        (2, IndexError, "index: expected an index from -2 to 1 for dimension 0, got 2"),
        ((0, -4), IndexError, "index: expected an index from -3 to 2 for dimension 0, got -4"),
        ((0,) * 5, IndexError, "index: expected at most 4 indices for a tensor of 4 dimensions"),
        (slice(None, None, 0), ValueError, "slice: expected a step other than 0, got 0"),
        (slice(1.5, None), TypeError, "slice: expected bounds to be ints or None, got float"),
        ((..., ...), IndexError, "index: expected at most one ellipsis ('...')"),
        (
            1.5,
            IndexError,
            "index: expected an int, a slice, None, ..., or a tensor or sequence of ints or bools, "
            "got float",
        ),
        (
            lamella.tensor([0.5]),
            IndexError,
            "index: expected tensors of integers or bools, got float32",
        ),
        (
            lamella.tensor([True]),
            IndexError,
            "index: expected a mask of size 2 for dimension 0, got 1",
        ),
    ],
)
def test_errors(key, kind, text):
    x = lamella.from_numpy(BASE.copy())
    with pytest.raises(kind) as caught:
        x[key]
    assert str(caught.value) == text
    with pytest.raises(kind):
        x[key] = 0


def test_no_dimensions():
    x = lamella.tensor(3.0)
    assert x[()].item() == 3.0 and x[...].item() == 3.0 and x[None].shape == (1,)
    with pytest.raises(IndexError):
        x[0]
    x[...] = 4
    assert x.item() == 4.0
    with pytest.raises(TypeError, match="len: expected a tensor with dimensions"):
        len(x)
    with pytest.raises(TypeError, match="iter: expected a tensor with dimensions"):
        iter(x)


def test_iteration():
    x = lamella.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = x
    assert b.tolist() == [3, 4] and len(x) == 2
    assert 3 in x and 5 not in x
    with pytest.raises(TypeError, match="elements of a tensor cannot be deleted"):
        del x[0]


def test_random_keys():
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    size = st.integers(0, 4)
    item = st.one_of(
        st.integers(-3, 3),
        st.builds(
            slice,
            st.none() | st.integers(-5, 5),
            st.none() | st.integers(-5, 5),
            st.none() | st.integers(1, 3),
        ),
        st.none(),
        st.just(...),
        st.lists(st.integers(-2, 1), min_size=1, max_size=3),
    )

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(st.lists(size, max_size=4), st.lists(item, max_size=5))
    def check(shape, key):
        array = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape)
        # Beside a list NumPy takes an int for a list of one; PyTorch selects, and so do we.
        if any(isinstance(item, list) for item in key):
            key = [slice(None) if isinstance(item, int) else item for item in key]
            # NumPy moves lists to the front where an ellipsis of no dimension is between them;
            # PyTorch leaves them in their place, and so do we.
            if sum(item is not None and item is not ... for item in key) == len(shape):
                key = [item for item in key if item is not ...] + [...] * (... in key)
        key = tuple(key)
        try:
            expected = array[key]
        except (IndexError, ValueError):
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                lamella.from_numpy(array)[key]
            return
        got = lamella.from_numpy(array)[key]
        assert tuple(got.shape) == expected.shape
        assert got.tolist() == expected.tolist()

    check()


@pytest.mark.parametrize(
    "name", "int8 int16 int32 int64 uint16 uint32 uint64".split() + ["uint8", "bool"]
)
def test_arrays_of_numpy(name):
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    ours, theirs = lamella.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    mask = name in ("uint8", "bool")
    array = np.array([1, 0, 1] if mask else [2, 0], dtype=name)
    table = np.array([[1, 0, 0, 1]] * 3 if mask else [[1, 0], [2, 2]], dtype=name)
    keys = [array, (array, 1), (array, None), (slice(1), array[:4]), table, array[:0]]
    keys += [np.array(1, dtype=name)]
    if not mask:
        keys += [(Ellipsis, np.array(1, dtype=name))]
        keys += [array[0], (0, array[1]), slice(array[1], array[0]), (array, array), list(array)]
    for key in keys:
        try:
            expected = theirs[key]
        except (IndexError, TypeError):
            with pytest.raises((IndexError, TypeError)):
                ours[key]
            continue
        assert ours[key].tolist() == expected.tolist(), key
        one, other = ours.clone(), theirs.clone()
        if name == "uint8":  # PyTorch fills by masks of bool alone
            continue
        one[key] = -1
        other[key] = -1
        assert one.tolist() == other.tolist(), key


def test_integer_tensors_are_indices_where_they_are_in_pytorch():
    x = lamella.arange(3.0)
    assert x[lamella.tensor([1], dtype=lamella.int32)].tolist() == [1.0]
    for dtype in (lamella.int8, lamella.int16):
        assert x[lamella.tensor(1, dtype=dtype)].item() == 1.0


def test_a_list_with_more_than_numbers_is_a_tuple():
    x = lamella.arange(6.0).reshape(2, 3)
    assert x[[slice(None), 0]].tolist() == [0, 3] and x[[..., 1]].tolist() == [1, 4]
    assert tuple(x[[None, 0]].shape) == (1, 3)
    assert x[[lamella.tensor([0, 1]), lamella.tensor([1, 2])]].tolist() == [1, 5]
    assert x[[lamella.tensor([0, 1]), [1, 2]]].tolist() == [1, 5]
    assert x[[lamella.tensor(1), 2]].item() == 5
    x[[slice(None), 0]] = 9
    assert x.tolist() == [[9, 1, 2], [9, 4, 5]]
    # Numbers and masks are data.
    assert x[[1, 0]].tolist() == [[9, 4, 5], [9, 1, 2]] and x[[True, False]].tolist() == [[9, 1, 2]]


def test_slices_call_whichever_kernel_is_registered():
    x, seen = lamella.arange(6.0), []
    library = lamella.library.Library("aten", "IMPL")

    def doubled(self, dim=0, start=None, end=None, step=1):
        seen.append((dim, start, end, step))
        if step == 3:
            raise KeyError("no thirds")
        return self + self

    library.impl("slice.Tensor", doubled, "CPU", allow_override=True)
    try:
        assert x[1:3].tolist() == (x + x).tolist() and x[:-1:2].numel() == 6
        with pytest.raises(KeyError, match="no thirds"):
            x[::3]
    finally:
        library._destroy()
    assert seen == [(0, 1, 3, 1), (0, None, -1, 2), (0, None, None, 3)]
    assert x[1:3].tolist() == [1, 2]


def test_indices_call_whichever_kernel_is_registered():
    x, seen = lamella.arange(6.0).reshape(2, 3), []
    library = lamella.library.Library("aten", "IMPL")

    def negated(self, dim, index):
        seen.append((tuple(self.shape), dim, index))
        return -self

    library.impl("select.int", negated, "CPU", allow_override=True)
    try:
        assert x[1].tolist() == (-x).tolist() and x[:, -1].tolist() == (-x).tolist()
        with pytest.raises(IndexError, match="expected an index from -2 to 1 for dimension 0"):
            x[2]
    finally:
        library._destroy()
    assert seen == [((2, 3), 0, 1), ((2, 3), 1, -1)]
    assert x[1].tolist() == [3, 4, 5] and x[-2, 1].item() == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda library: [[0, 1], [1, 0]],
        lambda library: [(0, 1), (1, 0)],
        lambda library: [0, [1, 0]],
        lambda library: [[0, 1]],
        lambda library: [library.tensor([0, 1]), library.tensor([1])],
        lambda library: [np.array([0, 1]), np.array([1, 0])],
        lambda library: [[True, False], [True, False, True]],
        lambda library: [0, 1],
        lambda library: [],
    ],
)
def test_a_list_of_sequences_is_a_tuple(make):
    torch = pytest.importorskip("torch")
    ours, theirs = lamella.arange(6).reshape(2, 3), torch.arange(6).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = theirs[make(torch)]
        theirs[make(torch)] = 9
    assert ours[make(lamella)].tolist() == wanted.tolist()
    ours[make(lamella)] = 9
    assert ours.tolist() == theirs.tolist()


def test_masks_of_bytes_and_empty_tensors():
    x = lamella.arange(6).reshape(2, 3)
    mask = lamella.tensor([1, 0], dtype=lamella.uint8)
    with pytest.warns(
        UserWarning, match="^index: masks of uint8 are deprecated; use masks of bool"
    ):
        assert x[mask].tolist() == [[0, 1, 2]]
    with pytest.warns(UserWarning, match="^index: masks of uint8"):
        x[mask] = 7
    assert x.tolist() == [[7, 7, 7], [3, 4, 5]]
    with pytest.raises(
        IndexError, match="^index: expected tensors of integers or bools, got float32$"
    ):
        x[lamella.empty(0)]
    assert x[[]].shape == (0, 3)
