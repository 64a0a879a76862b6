"""The names and modules of torch, and where each comes from: one table."""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

import lamella

# MODULE < SOURCE: NAME... gives a module of torch names of the module lamella.SOURCE; in NAME=OTHER
# that module's name is OTHER. WHOLE = PART... lists modules of torch that are part of a larger one
# here, where a leading dot stands for the package of WHOLE. MODULE... ! TEXT explains an absence,
# also for what is below the module. MODULE... : NAME... lists the names that programs import from
# modules that Lamella lacks, classes if they begin with a capital letter, else functions. A call of
# them raises an error, but instances of NAME() store their arguments, NAME! is an exception, NAME?
# returns False, and @NAME is a decorator with arguments. Indented lines belong to the row above.
_TABLE = """
# Names of torch itself.
torch < compat.serialization: save load
torch < compat._types: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor
  HalfTensor IntTensor LongTensor ShortTensor BFloat16Storage BoolStorage ByteStorage CharStorage
  ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage
  LongStorage ShortStorage set_default_tensor_type qint8 quint8 qint32 quint4x2 quint2x4 uint1
  uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 float8_e4m3fnuz
  float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2
torch < compat._checks: _check _check_index _check_is_size _check_not_implemented
  _check_tensor_all _check_type _check_value _check_tensor_all_with _check_with _assert
torch < compat._settings: are_deterministic_algorithms_enabled compiled_with_cxx11_abi
  get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads
  is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled
  set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
  set_num_interop_threads set_warn_always is_anomaly_enabled is_anomaly_check_nan_enabled
  set_anomaly_enabled use_deterministic_algorithms has_lapack has_mkl has_openmp SymBool SymFloat
  SymInt sym_float sym_int sym_max sym_min sym_not
torch < compat._functions: _efficientzerotensor typename is_conj is_inference is_neg is_nonzero
  is_same_size get_device vander to_dlpack from_file is_distributed norm_except_dim spmm dsmm hsmm
  _shape_as_tensor smm hspmm sspaddmm _assert_async _amp_foreach_non_finite_check_and_unscale_
  _amp_update_scale_ _grouped_mm _segment_reduce cond conv_tbc _convert_indices_from_coo_to_csr
  _convert_indices_from_csr_to_coo _cast_Long _cast_Float legacy_contiguous_format sym_ite sym_sum
  _is_all_true _is_any_true _native_multi_head_attention solve lstsq eig symeig lobpcg matrix_rank
torch < compat._batches: vmap
torch < compat._functional_tensors: _disable_functionalization _enable_functionalization
  _freeze_functional_tensor _from_functional_tensor _is_functional_tensor _mirror_autograd_meta_to
  _sync _to_functional_tensor
torch < compat._torch_function: DisableTorchFunction DisableTorchFunctionSubclass
torch < compat._modes: get_default_device set_default_device
torch < compat.amp: GradScaler
torch < compat._C: DispatchKey DispatchKeySet ExcludeDispatchKeyGuard Tag parse_schema Block
  CompilationUnit DeviceObjType Graph Node PyTorchFileReader
  PyTorchFileWriter TensorType Value
torch < compat.compiler: compile _disable_dynamo
torch < compat.futures: Future
torch < compat.jit: ScriptFunction ScriptModule fork wait
torch < compat.cuda: OutOfMemoryError AcceleratorError
torch < compat.storage: Storage TypedStorage is_storage
# Names that Lamella's modules lack.
_C._functorch < compat._higher_order: RandomnessType TransformType
_C._functorch < compat._tools: reshape_dim_into reshape_dim_outof
_functorch.vmap < compat._tools: restore_vmap
_ops < compat._higher_order: HigherOrderOperator
_tensor_str < _tensor_str: PRINT_OPTS=_options
_tensor_str < compat._printing: printoptions _add_suffixes _str_intern _tensor_str
autograd < compat._tools: _calculate_shape kineto_available
autograd < compat._autograd_parts: SavedTensor _force_original_view_tracking
  is_view_replay_enabled
autograd.grad_mode < compat._autograd_parts: _force_original_view_tracking
autograd.graph < compat._autograd_parts: allow_mutation_on_saved_tensors
autograd.functional < compat._autograd_parts: _construct_standard_basis_for
utils._mode_utils < compat._tools: all_same_mode
autograd.function < compat._tools: InplaceFunction
autograd < compat._nn: set_multithreading_enabled is_multithreading_enabled _is_checkpoint_valid
autograd.grad_mode < compat._nn: set_multithreading_enabled
_custom_op < compat: impl=_custom_op_impl
_library < compat: infer_schema=_library_parts simple_registry=_library_parts utils=_library_parts
library < _library: _scoped_library impl_abstract _fragment _impls
library < compat._overload_members: triton_op wrap_triton
library.Library < compat._overload_members: _register_fake _register_torch_dispatch_rule
  _resolve_name
nn < compat: _reduction
nn.Module < compat._nn: dump_patches=FALSE
nn.Module < compat.compiler: compile=_compile_in_place
nn.attention < compat: bias=_attention_bias flex_attention=_flex_attention
nn.functional < compat._attention_parts: _canonical_mask _check_key_padding_mask _in_projection
  _in_projection_packed _mha_shape_check _none_or_dtype _verify_batch_size
nn.functional < compat._functions: grouped_mm
nn.functional < compat.overrides: handle_torch_function has_torch_function
  has_torch_function_unary has_torch_function_variadic
nn.init < compat._nn: _calculate_correct_fan _no_grad_trunc_normal_
nn.init < nn.init: _no_grad_normal_=normal_ _no_grad_uniform_=uniform_
nn.modules.activation < nn: NonDynamicallyQuantizableLinear=Linear MultiheadAttention
nn.modules.batchnorm < nn: SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
nn.modules.conv < nn: LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
  LazyConvTranspose3d
nn.modules.conv < nn.modules.conv: _ConvTransposeMixin=_ConvTransposeNd
nn.modules.instancenorm < nn: LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
nn.modules.linear < nn: LazyLinear
nn.modules.loss < nn: CTCLoss TripletMarginWithDistanceLoss MultiLabelMarginLoss
  MultiLabelSoftMarginLoss MultiMarginLoss
nn.modules.module < compat._nn: _global_backward_hooks _global_backward_pre_hooks
  _global_buffer_registration_hooks _global_forward_hooks _global_forward_pre_hooks
  _global_module_registration_hooks _global_parameter_registration_hooks
nn.modules.module < nn.modules._state: _EXTRA_STATE_KEY_SUFFIX=EXTRA
  _IncompatibleKeys=IncompatibleKeys
nn.modules.module < utils.hooks: RemovableHandle
nn.modules.pooling < nn: FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d
  MaxUnpool1d MaxUnpool2d MaxUnpool3d
nn.modules.transformer < compat._nn: _get_activation_fn
nn.modules.utils < compat._nn: consume_prefix_in_state_dict_if_present
nn.parameter < compat._nn: _ParameterMeta
nn.parameter < nn.parameter: UninitializedTensorMixin=_Uninitialized
nn.utils < compat: fusion=_fusion
nn.utils < compat._fusion: fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval
  fuse_linear_bn_weights
nn.utils < compat._nn: convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format
nn.utils < nn.utils: clip_grad_norm=clip_grad_norm_
optim.Optimizer < compat._nn: profile_hook_step=PROFILE_HOOK_STEP
optim.lr_scheduler < compat._nn: _enable_get_lr_call
optim.lr_scheduler < optim.lr_scheduler: _LRScheduler=LRScheduler
optim.optimizer < compat._nn: ParamsT _get_capturable_supported_devices
  _use_grad_for_differentiable=_same _default_to_fused_or_foreach=_neither _get_value
  _dispatch_sqrt _stack_if_compiling=_get_value _view_as_real
sparse < compat._nn: check_sparse_tensor_invariants
sparse < compat._types: DoubleTensor=SparseDoubleTensor FloatTensor=SparseFloatTensor
  HalfTensor=SparseHalfTensor BFloat16Tensor=SparseBFloat16Tensor LongTensor=SparseLongTensor
  IntTensor=SparseIntTensor ShortTensor=SparseShortTensor CharTensor=SparseCharTensor
  ByteTensor=SparseByteTensor BoolTensor=SparseBoolTensor
  ComplexDoubleTensor=SparseComplexDoubleTensor ComplexFloatTensor=SparseComplexFloatTensor
storage < compat.serialization: _load_from_bytes
utils < compat._nn: swap_tensors
utils.checkpoint < compat._nn: get_device_states set_device_states detach_variable
  check_backward_validity
utils.checkpoint < compat._selective: CheckpointPolicy SelectiveCheckpointContext
  create_selective_checkpoint_contexts _CachedTorchDispatchMode _CachingTorchDispatchMode
utils.hooks < compat._nn: unserializable_hook=_same warn_if_has_hooks
# Modules that are part of a larger one.
_attention_bias = nn.attention.bias
_cpp_modules = nn.cpp
_batches = _C._functorch _functorch.vmap _functorch.autograd_function
_dynamo = _dynamo.eval_frame
_flex_attention = nn.attention.flex_attention
_functional_tensors = _subclasses.functional_tensor
_functorch = _functorch.aot_autograd _functorch.make_functional
_fusion = nn.utils.fusion
_jit_internal = jit.annotations
_members = nn.utils._named_member_accessor
_modes = _dynamo._trace_wrapped_higher_order_op utils._device
_reduction = nn._reduction
cuda = cuda.memory cuda.random cuda.streams
cuda.amp = .amp.autocast_mode .amp.common .amp.grad_scaler
cuda.nvtx = .profiler
distributed = distributed.constants distributed.distributed_c10d
distributed.nn = .nn.functional
distributions.compound = .independent .mixture_same_family .relaxed_bernoulli .relaxed_categorical
  .transformed_distribution
distributions.continuous = .cauchy .chi2 .exponential .fishersnedecor .gamma .laplace .normal
  .studentT .uniform
distributions.dirichlet = .beta
distributions.discrete = .bernoulli .binomial .categorical .geometric .multinomial
  .negative_binomial .one_hot_categorical .poisson
distributions.distribution = .exp_family
distributions.multivariate = .lkj_cholesky .lowrank_multivariate_normal .multivariate_normal
distributions.transformed = .gumbel .half_cauchy .half_normal .inverse_gamma .kumaraswamy
  .log_normal .logistic_normal .pareto .weibull
nn.modules.data_parallel = nn.parallel.data_parallel
nn.parallel = .parallel.distributed
nn.parallel.comm = cuda.comm
optim = optim._multi_tensor
optim.adam = .adamw
optim.adaptive = .adadelta .adagrad .adamax .nadam .radam .rmsprop
optim.matrices = ._adafactor
optim.step_sizes = .asgd .rprop
profiler = profiler.profiler
testing = testing._comparison
utils.tensorboard = .tensorboard.writer
_custom_op_impl = _custom_op.impl
_library_parts = _library.infer_schema _library.simple_registry _library.utils
_subclasses = _subclasses.fake_tensor
_tools = utils._dtype_abbrs _utils_internal multiprocessing.reductions
  _dispatch.python
  _functorch.eager_transforms _functorch.utils _vmap_internals autograd._functions
# Modules of this package that do not stand for a module of PyTorch.
 - = __main__ _absent _attention_bias _autograd_parts _batches _checks _cpp_modules _custom_op_impl
   _dispatcher _deterministic _fallback _foreach _functional_tensors _functions _functorch
  _higher_order _hollow _installed _library_parts _members _modes _names _nn _no_device
  _old_signatures _operators _overload_members
  _pickle_names _pickle_writer _printing _processes _selective _settings _shown_forms
  _tensor_members _tools _torch_function _types _wrapper_policy compat
# What is absent on purpose.
fx ! torch.fx has what traces, changes and runs graphs, and of its passes shape_prop and reinplace
onnx ! Lamella exports HLO: lamella.trace() and lamella.hlo
_dynamo ! lamella.compile compiles what it traces, without rewriting bytecode
_inductor ! lamella.compile compiles through HLO and LLVM
_export export ! lamella.trace(fn, *example_inputs) gives a Graph, which saves and loads
ao quantization ! Lamella has no quantized tensors
_functorch ! lamella.func has the transforms
package ! Lamella runs no code from files
mps ! Lamella has no devices of Apple
monitor ! lamella.profiler has what Lamella measures
utils.mobile_optimizer ! Lamella has no mobile programs
distributed.fsdp distributed.tensor ! lamella.nn.parallel has what Lamella shards
distributed.rpc distributed.pipelining ! Lamella has collectives only
distributed.elastic ! mpirun starts the ranks
# Modules that Lamella lacks but that programs import.
_dynamo.config _export _functorch _functorch.config _higher_order_ops
  _inductor.config _inductor.runtime compiler.config ao ao.nn
  ao.nn.intrinsic ao.quantization.fx ao.quantization.fx._decomposed backends.xnnpack
  distributed._composable distributed.algorithms distributed.algorithms._checkpoint
  distributed.algorithms.ddp_comm_hooks distributed.algorithms.model_averaging distributed.elastic
  distributed.elastic.multiprocessing distributed.launcher export._trace fx.passes fx.passes.infra
  numa onnx.operators onnx.symbolic_opset11 onnx.symbolic_opset12 :
profiler.itt : is_available?
autograd.profiler_util : EventList FunctionEvent FunctionEventAvg _format_time
_dynamo.exc : BackendCompilerFailed InternalTorchDynamoError! TensorifyScalarRestartAnalysis!
  TorchDynamoException! TorchRuntimeError! Unsupported! UserError!
_higher_order_ops.associative_scan : associative_scan
_higher_order_ops.cond : cond_op
_dynamo.utils : is_compile_supported warn_once
_guards : detect_fake_mode
_inductor : cudagraph_mark_step_begin list_mode_options
_inductor.cpu_vec_isa : pick_vec_isa
_inductor.exc : InductorError!
_inductor.runtime.cache_dir_utils : cache_dir
_prims_common : DeviceLikeType NumberType ShapeType StrideType TensorLike TensorLikeType
ao.nn.quantized : Conv2d Linear
ao.quantization quantization quantization.observer : QuantStub DeQuantStub QuantWrapper
  FakeQuantize FakeQuantizeBase ObserverBase QConfig HistogramObserver MinMaxObserver
  MovingAverageMinMaxObserver PerChannelMinMaxObserver prepare prepare_qat convert fuse_modules
  fuse_modules_qat get_default_qconfig get_default_qat_qconfig quantize_dynamic quantize
  default_qconfig
distributed._composable.fsdp distributed.fsdp distributed.fsdp._fully_shard distributed.fsdp.api
  distributed.fsdp.fully_sharded_data_parallel : FullyShardedDataParallel FSDPModule
  ShardingStrategy StateDictType MixedPrecision() CPUOffload() BackwardPrefetch
  MixedPrecisionPolicy() OffloadPolicy() CPUOffloadPolicy() OptimStateKeyType
  FullStateDictConfig() FullOptimStateDictConfig() LocalStateDictConfig()
  LocalOptimStateDictConfig() ShardedStateDictConfig() ShardedOptimStateDictConfig()
  StateDictConfig() OptimStateDictConfig() StateDictSettings UnshardHandle fully_shard
  register_fsdp_forward_method share_comm_ctx
distributed._functional_collectives : AsyncCollectiveTensor all_gather_tensor all_reduce
  all_to_all_single all_to_all_single_autograd permute_tensor wait_tensor
distributed._tensor distributed.tensor : DTensor DeviceMesh Placement() Replicate() Shard()
  Partial() distribute_tensor distribute_module init_device_mesh
distributed._tensor.device_mesh distributed.device_mesh : DeviceMesh init_device_mesh
distributed._tensor.experimental : implicit_replication
distributed.algorithms._checkpoint.checkpoint_wrapper : CheckpointWrapper CheckpointImpl
  checkpoint_wrapper apply_activation_checkpointing offload_wrapper
distributed.algorithms.ddp_comm_hooks.default_hooks : allreduce_hook bf16_compress_hook
  bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook : PostLocalSGDState post_localSGD_hook
distributed.algorithms.ddp_comm_hooks.powerSGD_hook : PowerSGDState powerSGD_hook
  batched_powerSGD_hook
distributed.algorithms.join : Join Joinable JoinHook
distributed.algorithms.model_averaging.averagers : ModelAverager PeriodicModelAverager
distributed.checkpoint.state_dict : StateDictOptions() get_model_state_dict
  get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict
distributed.autograd : is_available? backward context get_gradients
distributed.checkpoint : FileSystemReader FileSystemWriter load_state_dict save_state_dict
  HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint._consolidate_hf_safetensors : consolidate_safetensors_files
distributed.checkpoint.default_planner : DefaultLoadPlanner DefaultSavePlanner
distributed.checkpoint.format_utils : _EmptyStateDictLoadPlanner dcp_to_torch_save
distributed.checkpoint.hf_storage : HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint.optimizer : load_sharded_optimizer_state_dict
distributed.checkpoint.state_dict_loader : _load_state_dict
distributed.fsdp.sharded_grad_scaler : ShardedGradScaler
distributed.fsdp.wrap : ModuleWrapPolicy CustomPolicy enable_wrap wrap always_wrap_policy
  size_based_auto_wrap_policy transformer_auto_wrap_policy lambda_auto_wrap_policy _or_policy
distributed.optim : DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
distributed.pipelining : ScheduleGPipe SplitPoint pipeline
distributed.elastic.multiprocessing.errors : ChildFailedError! record
distributed.launch : launch main @parse_args
distributed.launcher.api : LaunchConfig elastic_launch
distributed.rpc : is_available? RRef TensorPipeRpcBackendOptions get_worker_info init_rpc remote
  rpc_async rpc_sync shutdown
distributed.run : get_args_parser main run
distributed.utils : _sync_module_states
distributed.tensor._utils : compute_local_shape_and_global_offset
distributed.tensor.experimental._attention : set_rotate_method
distributed.tensor.experimental : context_parallel implicit_replication
distributed.tensor.parallel : ColwiseParallel() RowwiseParallel() SequenceParallel()
  PrepareModuleInput() PrepareModuleOutput() ParallelStyle() parallelize_module loss_parallel
distributed.tensor.placement_types : Placement() Replicate() Shard() Partial() _StridedShard()
export : ExportedProgram Dim export load save
export.decomp_utils : CustomDecompTable
fx.experimental.proxy_tensor : ProxyTorchDispatchMode make_fx
fx._pytree : register_pytree_flatten_spec tree_flatten_spec
fx.passes.infra.pass_base : PassBase PassResult
numa.binding : AffinityMode NumaOptions()
nn.parallel._functions : Broadcast Gather ReduceAddCoalesced Scatter
nn.parallel.comm : broadcast broadcast_coalesced gather reduce_add scatter
nn.parallel.parallel_apply : get_a_var parallel_apply
nn.parallel.replicate : replicate
nn.parallel.scatter_gather : gather scatter scatter_kwargs
onnx : ONNXProgram OperatorExportTypes TensorProtoDataType TrainingMode export
onnx.symbolic_helper : @parse_args @quantized_args
nn.quantized : BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d FloatFunctional Linear ReLU6
package : PackageExporter PackageImporter
quantization.qconfig : QConfig default_qconfig get_default_qconfig
utils.data.graph : traverse_dps
utils.data.graph_settings : apply_shuffle_settings
"""

# For each module and name that is added: the module of Lamella, and the name of the value in it.
ADDED: dict[str, dict[str, tuple[str, str]]] = {}
# For each module of torch that is part of another: that module.
PART_OF: dict[str, str] = {}
# The modules of this package that do not stand for a module of PyTorch.
OWN: set[str] = set()
# For each dotted name that is absent on purpose: the explanation.
ABSENT: dict[str, str] = {}
# For each module that Lamella lacks: its names, and the sign of each, "()", "!", "?", "@" or "".
HOLLOW: dict[str, dict[str, str]] = {}
# Names whose values change, so they are not cached.
CHANGING = frozenset({"default_generator"})


def _read(row: str) -> None:
    match = re.match(r"([^#]+?) ([<=!:])(?: (.*))?$", row)
    if match is None:
        return
    modules, sign, rest = match[1].split(), match[2], match[3] or ""
    for module in modules:
        if sign == "!":
            ABSENT[module] = rest
        elif sign == ":":
            HOLLOW[module] = {word.strip("()!?@"): re.sub(r"\w", "", word) for word in rest.split()}
        elif sign == "=" and module == "-":
            OWN.update(rest.split())
        elif sign == "=":
            package = module.rpartition(".")[0]
            PART_OF.update({package * (w[0] == ".") + w: module for w in rest.split()})
        else:
            source, _, names = rest.partition(": ")
            for name, _, other in (word.partition("=") for word in names.split()):
                ADDED.setdefault(module, {})[name] = source, other or name


for _row in re.sub(r"\n +", " ", _TABLE).split("\n"):
    _read(_row)
_TOP = ADDED.pop("torch")


@functools.cache
def top() -> dict[str, tuple[str, str]]:
    """Like ADDED, for the module torch: names that Lamella lacks or uses with another meaning."""
    from lamella.compat import _foreach

    # Lamella's own versions take precedence, because they are faster.
    named = _foreach.NAMES
    added = [n for n in named if n in _foreach.NARROW or not hasattr(lamella, n)]
    return _TOP | {name: ("compat._foreach", name) for name in added}


def find(source: str, name: str) -> Any:
    """The value or the module of this name in lamella.`source`."""
    owner = importlib.import_module(f"lamella.{source}")
    if hasattr(owner, name):
        return getattr(owner, name)
    return importlib.import_module(f"lamella.{source}.{name}")
