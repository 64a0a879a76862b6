"""The caching allocator, pinned memory, and statistics."""

import pytest

import lamella

KIB, MIB = 1 << 10, 1 << 20


def block(count, device="cuda"):
    return lamella.empty(count, dtype=lamella.uint8, device=device)


def test_sizes_and_segments(cuda, standin):
    x = block(1)
    assert cuda.memory_allocated() == 512 and cuda.memory_reserved() == 2 * MIB
    y = block(MIB)  # small blocks end here
    assert cuda.memory_allocated() == 512 + MIB and cuda.memory_reserved() == 2 * MIB
    z = block(MIB + 1)
    assert cuda.memory_reserved() == 22 * MIB
    big = block(30 * MIB)
    assert cuda.memory_reserved() == 52 * MIB  # a multiple of 2 MiB of its own
    assert standin.standin_blocks(0) == 3
    stats = cuda.memory_stats()
    assert stats["allocation.all.current"] == 4 and stats["allocation.small_pool.current"] == 2
    assert stats["segment.large_pool.current"] == 2
    assert stats["requested_bytes.all.current"] == 1 + MIB + MIB + 1 + 30 * MIB
    del x, y, z, big
    assert cuda.memory_allocated() == 0 and cuda.memory_reserved() == 52 * MIB
    assert cuda.max_memory_allocated() == 512 + MIB + MIB + 512 + 30 * MIB
    cuda.empty_cache()
    assert cuda.memory_reserved() == 0 and standin.standin_blocks(0) == 0
    assert cuda.memory_stats()["inactive_split_bytes.all.current"] == 0


def test_blocks_are_split_and_joined(cuda, standin):
    blocks = [block(100 * KIB) for _ in range(20)]
    first = blocks[0].data_ptr()
    assert [x.data_ptr() - first for x in blocks] == [i * 100 * KIB for i in range(20)]
    assert standin.calls("cuMemAlloc_v2") == 1
    del blocks[5], blocks[6 - 1 + 1], blocks[5]  # neighbours, in some order
    x = block(300 * KIB)
    assert x.data_ptr() - first == 500 * KIB
    del x, blocks
    whole = block(MIB)
    assert whole.data_ptr() == first and standin.calls("cuMemAlloc_v2") == 1


def test_a_hit_asks_the_driver_for_nothing(cuda, standin):
    x = block(1000)
    del x
    standin.standin_reset_calls()
    assert block(1000).numel() == 1000
    assert standin.calls("cuMemAlloc_v2") == 0 and standin.calls("cuStreamSynchronize") == 0


def test_blocks_belong_to_streams(cuda):
    side = cuda.Stream()
    x = block(1000)
    at = x.data_ptr()
    del x
    with cuda.stream(side):
        y = block(1000)
    z = block(1000)
    assert y.data_ptr() != at and z.data_ptr() == at


def test_record_stream(cuda):
    side = cuda.Stream()
    x = block(1000)
    at = x.data_ptr()
    big = block(8 * MIB)
    with cuda.stream(side):
        for _ in range(20):
            big.clone()
        x.clone()
    x[:10].record_stream(side)
    del x
    busy = not side.query()
    y = block(1000)
    assert not busy or y.data_ptr() != at  # the other stream may still read it
    del y
    side.synchronize()
    assert at in [z.data_ptr() for z in [block(1000), block(1000)]]
    with pytest.raises(RuntimeError, match="record_stream: expected a tensor on cuda, got one on"):
        lamella.ones(2).record_stream(side)


def test_memory_is_not_reused_before_its_use_on_the_stream(cuda):
    """Without waits in between, each clone sees its own values."""
    results = []
    for i in range(50):
        x = lamella.full((1000,), i, dtype=lamella.float32).cuda()
        results.append((x + 1).sum())
        del x
    assert [r.item() for r in results] == [1000.0 * (i + 1) for i in range(50)]


def test_devices_are_apart(cuda, standin):
    x = block(1000, "cuda:1")
    assert cuda.memory_allocated(0) == 0 and cuda.memory_allocated("cuda:1") == 1024
    with cuda.device(1):
        assert cuda.memory_allocated() == 1024 and block(1).device == x.device
    free, total = cuda.mem_get_info(1)
    assert total == 8 << 30 and total - free == cuda.memory_reserved(1)
    del x
    cuda.empty_cache()


def test_a_fraction_of_the_memory(cuda):
    try:
        cuda.set_per_process_memory_fraction(1 / 1024)  # 8 MiB
        x = block(MIB)
        with pytest.raises(cuda.OutOfMemoryError, match="may take 0.0976562 % of the device"):
            block(8 * MIB)
        del x
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="expected 'fraction' from 0 to 1, got 2"):
        cuda.set_per_process_memory_fraction(2.0)
    assert len(cuda.memory_summary().splitlines()) == 1 + 9 * 3 + 4


def test_empty_tensors_need_no_memory(cuda):
    x = lamella.empty(0, 3, device="cuda")
    assert x.data_ptr() == 0 and cuda.memory_allocated() == 0
    assert (x + 1).shape == (0, 3)


# ---- Pinned memory -------------------------------------------------------------------------------


def test_pinned_memory(cuda, standin):
    x = lamella.arange(6.0).reshape(2, 3)
    pinned = x.t().pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned
    assert pinned.stride() == (1, 3) and pinned.equal(x.t()) and pinned[1:].is_pinned()
    made = lamella.ones(3, pin_memory=True)
    assert made.is_pinned() and made.tolist() == [1, 1, 1]
    assert lamella.empty_like(x, pin_memory=True).is_pinned()
    assert lamella.empty_strided((2, 2), (1, 2), pin_memory=True).is_pinned()
    assert not lamella.zeros(2, pin_memory=False).is_pinned()
    assert cuda.host_memory_stats()["used_bytes"] > 0
    del pinned, made
    cuda.synchronize()
    before = standin.calls("cuMemHostAlloc")
    again = lamella.empty(3, pin_memory=True)
    assert standin.calls("cuMemHostAlloc") == before  # a block that was kept
    del again
    cuda.empty_cache()
    with pytest.raises(RuntimeError, match="'pin_memory' to be False for a tensor on meta"):
        lamella.empty(3, device="meta", pin_memory=True)
    with pytest.raises(RuntimeError, match="pin_memory: expected a tensor on cpu, got one on cuda"):
        x.cuda().pin_memory()


def test_pinned_memory_is_kept_while_it_is_copied(cuda):
    """A block whose copy is under way does not serve another tensor."""
    results = []
    for i in range(20):
        x = lamella.full((4096,), float(i)).pin_memory()
        results.append(x.to("cuda", non_blocking=True))
        del x
    assert [r.unique().tolist() for r in results] == [[float(i)] for i in range(20)]
