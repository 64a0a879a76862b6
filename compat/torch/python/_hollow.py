"""Stand-ins for modules of PyTorch that Lamella lacks but that programs import.

Libraries ask whether an object is a DTensor or a GraphModule, and import strategies that they may
never use. The names of HOLLOW can be imported: the classes have no instances, and calling one of
the names raises an error that says what Lamella offers instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_FSDP = (
    "FullyShardedDataParallel FSDPModule ShardingStrategy StateDictType MixedPrecision CPUOffload "
    "BackwardPrefetch MixedPrecisionPolicy OffloadPolicy CPUOffloadPolicy OptimStateKeyType "
    "FullStateDictConfig FullOptimStateDictConfig LocalStateDictConfig LocalOptimStateDictConfig "
    "ShardedStateDictConfig ShardedOptimStateDictConfig StateDictConfig OptimStateDictConfig "
    "StateDictSettings UnshardHandle fully_shard register_fsdp_forward_method share_comm_ctx"
)
_WRAP = (
    "ModuleWrapPolicy CustomPolicy enable_wrap wrap always_wrap_policy size_based_auto_wrap_policy "
    "transformer_auto_wrap_policy lambda_auto_wrap_policy _or_policy"
)
_DTENSOR = (
    "DTensor DeviceMesh Placement Replicate Shard Partial distribute_tensor distribute_module "
    "init_device_mesh"
)
_PLANS = (
    "ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput PrepareModuleOutput "
    "ParallelStyle parallelize_module loss_parallel"
)
_QUANTIZED = (
    "QuantStub DeQuantStub QuantWrapper FakeQuantize FakeQuantizeBase ObserverBase QConfig "
    "HistogramObserver MinMaxObserver MovingAverageMinMaxObserver PerChannelMinMaxObserver "
    "prepare prepare_qat convert fuse_modules fuse_modules_qat get_default_qconfig "
    "get_default_qat_qconfig quantize_dynamic quantize default_qconfig"
)

# The names of each module: classes begin with a capital letter, functions do not.
HOLLOW = {
    "_custom_ops": "",
    "_dynamo.config": "",
    "_dynamo.exc": "BackendCompilerFailed InternalTorchDynamoError TensorifyScalarRestartAnalysis "
    "TorchDynamoException TorchRuntimeError Unsupported UserError",
    "_export": "",
    "_functorch": "",
    "_functorch.config": "",
    "_functorch.aot_autograd": "aot_function aot_module",
    "_higher_order_ops": "",
    "_higher_order_ops.associative_scan": "associative_scan",
    "_dynamo.utils": "is_compile_supported warn_once",
    "_functorch.eager_transforms": "",
    "_guards": "detect_fake_mode",
    "_inductor": "cudagraph_mark_step_begin list_mode_options",
    "_inductor.config": "",
    "_inductor.cpu_vec_isa": "pick_vec_isa",
    "_inductor.exc": "InductorError",
    "_inductor.runtime": "",
    "_inductor.runtime.cache_dir_utils": "cache_dir",
    "_prims_common": "DeviceLikeType NumberType ShapeType StrideType TensorLike TensorLikeType",
    "_subclasses": "FakeTensor FakeTensorMode UnsupportedFakeTensorException",
    "_subclasses.fake_tensor": "FakeTensor FakeTensorMode is_fake",
    "_subclasses.functional_tensor": "FunctionalTensor FunctionalTensorMode",
    "compiler.config": "",
    "ao": "",
    "ao.nn": "",
    "ao.nn.intrinsic": "",
    "ao.nn.quantized": "Conv2d Linear",
    "ao.quantization": _QUANTIZED,
    "ao.quantization.fx": "",
    "ao.quantization.fx._decomposed": "",
    "backends.xnnpack": "",
    "distributed._composable": "",
    "distributed._composable.fsdp": _FSDP,
    "distributed._functional_collectives": "AsyncCollectiveTensor all_gather_tensor all_reduce "
    "all_to_all_single all_to_all_single_autograd permute_tensor wait_tensor",
    "distributed._tensor": _DTENSOR,
    "distributed._tensor.device_mesh": "DeviceMesh init_device_mesh",
    "distributed._tensor.experimental": "implicit_replication",
    "distributed.algorithms": "",
    "distributed.algorithms._checkpoint": "",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "CheckpointWrapper CheckpointImpl "
    "checkpoint_wrapper apply_activation_checkpointing offload_wrapper",
    "distributed.algorithms.ddp_comm_hooks": "",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "allreduce_hook bf16_compress_hook "
    "bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState "
    "post_localSGD_hook",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState powerSGD_hook "
    "batched_powerSGD_hook",
    "distributed.algorithms.join": "Join Joinable JoinHook",
    "distributed.algorithms.model_averaging": "",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.checkpoint.state_dict": "StateDictOptions get_model_state_dict "
    "get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict",
    "distributed.autograd": "is_available backward context get_gradients",
    "distributed.checkpoint": "FileSystemReader FileSystemWriter load_state_dict save_state_dict "
    "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "distributed.checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner dcp_to_torch_save",
    "distributed.checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "distributed.device_mesh": "DeviceMesh init_device_mesh",
    "distributed.fsdp": _FSDP,
    "distributed.fsdp._fully_shard": _FSDP,
    "distributed.fsdp.api": _FSDP,
    "distributed.fsdp.fully_sharded_data_parallel": _FSDP,
    "distributed.fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "distributed.fsdp.wrap": _WRAP,
    "distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    "distributed.pipelining": "ScheduleGPipe SplitPoint pipeline",
    "distributed.elastic": "",
    "distributed.elastic.multiprocessing": "",
    "distributed.elastic.multiprocessing.errors": "ChildFailedError record",
    "distributed.launch": "launch main parse_args",
    "distributed.launcher": "",
    "distributed.launcher.api": "LaunchConfig elastic_launch",
    "distributed.rpc": "is_available RRef TensorPipeRpcBackendOptions get_worker_info init_rpc "
    "remote rpc_async rpc_sync shutdown",
    "distributed.run": "get_args_parser main run",
    "distributed.utils": "_sync_module_states",
    "distributed.tensor": _DTENSOR,
    "distributed.tensor._utils": "compute_local_shape_and_global_offset",
    "distributed.tensor.experimental._attention": "set_rotate_method",
    "distributed.tensor.experimental": "context_parallel implicit_replication",
    "distributed.tensor.parallel": _PLANS,
    "distributed.tensor.placement_types": "Placement Replicate Shard Partial _StridedShard",
    "export": "ExportedProgram Dim export load save",
    "export._trace": "",
    "export.decomp_utils": "CustomDecompTable",
    "fx.experimental.proxy_tensor": "ProxyTorchDispatchMode make_fx",
    "fx._pytree": "register_pytree_flatten_spec tree_flatten_spec",
    "fx.passes": "",
    "fx.passes.infra": "",
    "fx.passes.infra.pass_base": "PassBase PassResult",
    "numa": "",
    "numa.binding": "AffinityMode NumaOptions",
    "nn.parallel._functions": "Broadcast Gather ReduceAddCoalesced Scatter",
    "nn.parallel.comm": "broadcast broadcast_coalesced gather reduce_add scatter",
    "nn.parallel.parallel_apply": "get_a_var parallel_apply",
    "nn.parallel.replicate": "replicate",
    "nn.parallel.scatter_gather": "gather scatter scatter_kwargs",
    "onnx": "ONNXProgram OperatorExportTypes TensorProtoDataType TrainingMode export",
    "onnx.operators": "",
    "onnx.symbolic_helper": "parse_args quantized_args",
    "onnx.symbolic_opset11": "",
    "onnx.symbolic_opset12": "",
    "nn.quantized": "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d FloatFunctional Linear ReLU6",
    "package": "PackageExporter PackageImporter",
    "quantization": _QUANTIZED,
    "quantization.observer": _QUANTIZED,
    "quantization.qconfig": "QConfig default_qconfig get_default_qconfig",
    "utils.data.graph": "traverse_dps",
    "utils.data.graph_settings": "apply_shuffle_settings",
}


# Classes of configurations, which libraries instantiate while they are imported.
_CONFIGS = frozenset(
    "CPUOffload CPUOffloadPolicy ColwiseParallel FullOptimStateDictConfig FullStateDictConfig "
    "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy "
    "NumaOptions OffloadPolicy OptimStateDictConfig ParallelStyle Partial Placement "
    "PrepareModuleInput PrepareModuleOutput Replicate RowwiseParallel SequenceParallel Shard "
    "ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictOptions "
    "_StridedShard".split()
)


# Functions that are used as decorators with arguments.
_DECORATORS = frozenset({"parse_args", "quantized_args"})


class _Config:
    """A configuration object: it stores its arguments, as attributes if they have names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.__dict__.update(kwargs)


def _says(tail: str, name: str) -> str:
    from lamella.compat._absent import PAGE, sentence

    said = sentence(tail) or "nothing stands for it"
    return f"torch.{tail}.{name}: Lamella has none; {said} (absent names: {PAGE})"


def _refuse(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: the class has no instances."""
    raise RuntimeError(_says(cls.__module__.removeprefix("torch."), cls.__name__))


def _no() -> bool:
    """False."""
    return False


class _HollowType(type):
    """The metaclass of stand-in classes. An upper-case attribute is a string of its own name."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return f"{cls.__name__}.{name}"


def member(tail: str, name: str) -> Any:
    """The stand-in for torch.`tail`.`name`, or None if the name is not in HOLLOW."""
    if name not in HOLLOW.get(tail, "").split():
        return None
    if name.lstrip("_")[0].isupper():
        # One class may be listed under several modules.
        root = tail.split(".")[0]
        home = next(m for m in HOLLOW if m.split(".")[0] == root and name in HOLLOW[m].split())
        if home != tail:
            return getattr(module(home), name)
        if name.endswith(("Error", "Exception", "Analysis", "Unsupported")):
            return type(name, (RuntimeError,), {"__module__": f"torch.{tail}"})
        if name in _CONFIGS:
            return _HollowType(name, (_Config,), {"__module__": f"torch.{tail}"})
        return _HollowType(name, (), {"__module__": f"torch.{tail}", "__new__": _refuse})

    if name == "is_available":
        return _no
    if name in _DECORATORS:
        return lambda *arguments, **options: lambda function: function

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_says(tail, name))

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"torch.{tail}"
    return function


class _Hollow(ModuleType):
    """The stand-in for a module: the names of one entry of HOLLOW."""

    def __getattr__(self, name: str) -> Any:
        tail = self.__name__.removeprefix("torch.")
        found = None if name.startswith("__") else member(tail, name)
        if found is None and f"{tail}.{name}" in HOLLOW:
            found = module(f"{tail}.{name}")
        if found is None:
            from lamella.compat._absent import missing

            raise missing(f"{tail}.{name}", dir(self))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *HOLLOW[self.__name__.removeprefix("torch.")].split()})


_made: dict[str, ModuleType] = {}


class _Switches(ModuleType):
    """Settings of PyTorch's compilers: values are stored, and nothing reads them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _GROUPS:
            return False
        setattr(self, name, _Switches(f"{self.__name__}.{name}"))
        return getattr(self, name)

    @contextlib.contextmanager
    def patch(self, changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """A context, and a decorator, that sets some of the settings temporarily."""
        if isinstance(changes, str):
            changes = {changes: value}
        changes = {**(changes or {}), **more}
        before = {name: getattr(self, name) for name in changes}
        self.__dict__.update(changes)
        try:
            yield
        finally:
            self.__dict__.update(before)


# Settings that are groups of further settings.
_GROUPS = frozenset("aot_inductor cpp cuda halide rocm trace triton".split())


def module(tail: str) -> ModuleType:
    """The stand-in for torch.`tail`, with the names of HOLLOW."""
    if tail not in _made:
        kind = _Switches if tail.endswith(".config") else _Hollow
        _made[tail] = kind(f"torch.{tail}", "Names that are absent here.")
        _made[tail].__path__ = []
    return _made[tail]
