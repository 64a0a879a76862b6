// Running programs.
//
// Note [Runs]
//   A call of PJRT_LoadedExecutable_Execute makes the outputs' buffers and returns. If the program
//   is short and its arguments are there, it has run by then, on the caller's thread; otherwise a
//   worker runs it once all arguments are complete, and then completes the outputs. So programs
//   wait for their arguments alone, and a host callback may call programs itself.
//   An error of a run on the caller's thread is returned; one of a later run is that of its
//   outputs. A donated buffer is deleted by the call. The run writes in its memory if no other
//   buffer, view or run holds it. Outputs share memory with nothing else, as callers may write
//   through pointers.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "lamella/graph/evaluate/together.h"
#include "lamella/graph/runtime/user_data.h"
#include "lamella/pjrt/buffer.h"
#include "lamella/pjrt/functions.h"
#include "lamella/pjrt/program.h"
#include "lamella/pjrt/workers.h"

namespace lamella::pjrt {

struct ExecuteContext {
  hlo::UserData user_data;
};
void add_user_data(ExecuteContext& context, int64_t type, void* data) {
  context.user_data.set(type, data);
}
void execute_context_create(ExecuteContextCreateArgs& args) { args.context = new ExecuteContext; }
void execute_context_destroy(ExecuteContextDestroyArgs& args) { delete args.context; }

namespace {

// The elements in another order, in memory of their own.
hlo::Value rearranged(const hlo::Value& value, const ArrayType& type, bool to_row_major) {
  hlo::Value made = hlo::Value::uninitialized(&type.row_major_shape(), type.bytes());
  std::vector<int64_t> row_major = type.strides_of(hlo::row_major(type.shape().rank()));
  std::vector<int64_t> own = type.byte_strides();
  copy_strided(type.shape().dimensions(), type.element_bytes(), value.data(),
               to_row_major ? own : row_major, made.data(), to_row_major ? row_major : own);
  return made;
}

// A run of a program: on one device, or on all of them, whose arguments and outputs then follow
// each other.
struct Run {
  ProgramPointer program;
  size_t devices = 1;
  hlo::RunOptions options;
  hlo::UserData user_data;
  std::vector<CellPointer> arguments;
  std::vector<bool> given;  // arguments that the run may take; empty if none
  std::vector<CellPointer> outputs;
  CompletionPointer done;  // may be null
  std::atomic<size_t> missing = 0;

  hlo::Value argument(size_t i) {
    Cell& cell = *arguments[i];
    hlo::Value value;
    const hlo::Shape& shape =
        program->parameters()[i % program->parameters().size()]->row_major_shape();
    if (LAMELLA_UNLIKELY(!shape.is_array())) return hlo::Value::token(&shape);
    if (!given.empty() && given[i] && arguments[i].use_count() == 1) {
      value = std::move(cell.value);
    } else {
      value.share(cell.value);
    }
    if (LAMELLA_UNLIKELY(!cell.type->is_row_major())) value = rearranged(value, *cell.type, true);
    return value;
  }
  static void fill(Cell& output, hlo::Value value) {
    const ArrayType& type = *output.type;
    const hlo::Shape* shape = &type.row_major_shape();
    if (!shape->is_array()) {
      output.value = hlo::Value::token(shape);
      return;
    }
    if (value.bytes() != type.bytes()) {
      fail(Code::Internal, "lamella: expected an output of ", shape->to_string(), ", got ",
           value.shape().to_string());
    }
    if (LAMELLA_UNLIKELY(!type.is_row_major())) {
      output.value = rearranged(value, type, false);
    } else {
      output.value = hlo::Value::reshaped(hlo::Value::writable(std::move(value)), shape);
    }
  }

  // Note [Several partitions]
  //   A program for several partitions is one for all of them: the parts of its arguments are put
  //   together, it runs once, and its results are cut. Of several replicas each is a thread.
  void run_together() {
    const Assignment& assignment = program->assignment();
    const auto replicas = static_cast<size_t>(assignment.replicas);
    const auto partitions = static_cast<size_t>(assignment.partitions);
    std::vector<int64_t> present;
    for (size_t r = 0; r < replicas; ++r) present.push_back(static_cast<int64_t>(r * partitions));
    hlo::Rendezvous rendezvous;
    hlo::on_each_device(replicas, rendezvous, [&](size_t r) {
      const hlo::Participant participant{&rendezvous, present[r], assignment.partitions, present};
      hlo::RunOptions own = options;
      own.user_data = &user_data;
      if (replicas > 1) own.participant = &participant;
      run_replica(r * partitions, partitions, own);
    });
  }
  void run_replica(size_t first, size_t partitions, const hlo::RunOptions& own) {
    const hlo::Module& module = program->module();
    const ProgramShardings& shardings = program->shardings();
    const size_t count = arguments.size() / devices;
    std::vector<hlo::Value> values(count);
    for (size_t n = 0; n < count; ++n) {
      if (partitions == 1 || shardings.parameters[n].is_whole()) {
        values[n] = argument(first * count + n);
        continue;
      }
      hlo::Value whole = hlo::Value::uninitialized(module.entry->parameters[n]->shape);
      for (size_t d = 0; d < partitions; ++d) {
        if (!shardings.parameters[n].is_first(static_cast<int64_t>(d))) continue;
        hlo::join_part(argument((first + d) * count + n), shardings.parameters[n],
                       static_cast<int64_t>(d), whole);
      }
      values[n] = std::move(whole);
    }
    hlo::Value result = program->executable().run(values, own);
    values.clear();
    const size_t made = outputs.size() / devices;
    for (size_t n = 0; n < made; ++n) {
      const hlo::Value& whole = result.shape().is_tuple() ? result.element(n) : result;
      for (size_t d = 0; d < partitions; ++d) {
        Cell& output = *outputs[(first + d) * made + n];
        if (partitions == 1 || !whole.shape().is_array()) {
          fill(output, whole);
        } else {
          fill(output, hlo::part_of(whole, shardings.outputs[n], static_cast<int64_t>(d),
                                    &output.type->row_major_shape()));
        }
      }
    }
  }

  void run() {
    if (devices > 1) return run_together();
    constexpr size_t kFew = 16;
    hlo::Value few[kFew];
    std::vector<hlo::Value> many(arguments.size() > kFew ? arguments.size() : 0);
    hlo::Value* values = many.empty() ? few : many.data();
    for (size_t i = 0; i < arguments.size(); ++i) values[i] = argument(i);
    options.user_data = &user_data;
    hlo::Value result = program->executable().run({values, arguments.size()}, options);
    for (size_t i = 0; i < arguments.size(); ++i) values[i] = hlo::Value();
    if (!result.shape().is_tuple()) return fill(*outputs[0], std::move(result));
    std::vector<hlo::Value> parts;
    for (size_t i = 0; i < result.size(); ++i) parts.push_back(result.element(i));
    result = hlo::Value();
    for (size_t i = 0; i < parts.size(); ++i) fill(*outputs[i], std::move(parts[i]));
  }
  // For runs of workers: errors go to the outputs.
  void finish() noexcept {
    Status status;
    for (const CellPointer& argument : arguments) {
      if (status.ok()) status = argument->completion.status();
    }
    if (status.ok()) {
      try {
        run();
      } catch (...) {
        status = current_status(Code::Internal);
      }
    }
    arguments.clear();
    for (const CellPointer& output : outputs) output->completion.set(status);
    if (done != nullptr) done->set(status);
  }
};

// Starts the run when its last argument is complete.
void start_later(const std::shared_ptr<Run>& run) {
  run->missing = run->arguments.size() + 1;
  auto one_less = [run](const Status&) {
    if (run->missing.fetch_sub(1) == 1) run_on_worker([run] { run->finish(); });
  };
  for (const CellPointer& argument : run->arguments) {
    if (argument->completion.ready()) {
      run->missing.fetch_sub(1);
    } else {
      argument->completion.then(one_less);
    }
  }
  one_less({});
}

bool is_donated(const Program& program, const ExecuteOptions* options, size_t i) {
  if (!program.may_donate(i)) return false;
  if (options == nullptr) return true;
  for (size_t k = 0; k < options->not_donatable.size; ++k) {
    if (options->not_donatable.data[k] == static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Takes the arguments of one device, checked before any is deleted.
void take_arguments(Run& run, Buffer* const* buffers, size_t count, const ExecuteOptions* options) {
  const Program& program = *run.program;
  require(count == program.parameters().size(), program.name(), ": expected ",
          program.parameters().size(), " arguments, got ", count);
  const size_t before = run.arguments.size();
  run.arguments.reserve(before + count);
  for (size_t i = 0; i < count; ++i) {
    run.arguments.push_back(buffers[i]->live_cell());
    const hlo::Shape& expected = program.parameters()[i]->shape();
    // JAX passes arrays without elements for tokens.
    require(!expected.is_array() || buffers[i]->type->shape().compatible(expected), program.name(),
            ": expected argument ", i, " to be ", expected.to_string(false), ", got ",
            buffers[i]->type->shape().to_string(false));
  }
  if (!program.donates()) return;
  run.given.resize(before + count);
  for (size_t i = 0; i < count; ++i) {
    run.given[before + i] = is_donated(program, options, i);
    if (!run.given[before + i]) continue;
    for (size_t k = 0; k < count; ++k) {
      require(k == i || buffers[k] != buffers[i],
              "Attempt to donate a buffer that is used twice by ",
              "the same call to Execute(): arguments ", std::min(i, k), " and ", std::max(i, k),
              " of ", program.name());
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (run.given[before + i]) buffers[i]->remove();
  }
}

std::shared_ptr<Run> make_run(const ProgramPointer& program, const ExecuteOptions* options,
                              const Device& device) {
  auto run = std::make_shared<Run>();
  run->program = program;
  run->options.device_ordinal = device.description.id;
  if (options != nullptr && has(options, &options->context) && options->context != nullptr) {
    run->user_data = options->context->user_data;
  }
  return run;
}

void execute_on(const ProgramPointer& program, LoadedExecutableExecuteArgs& args, size_t d,
                Device* device) {
  const ExecuteOptions* options = args.options;
  auto run = make_run(program, options, *device);
  take_arguments(*run, args.arguments == nullptr ? nullptr : args.arguments[d], args.argument_count,
                 options);
  const std::vector<ArrayTypePointer>& types = program->outputs();
  run->outputs.reserve(types.size());
  for (const ArrayTypePointer& type : types) run->outputs.push_back(std::make_shared<Cell>(type));
  bool inlined = program->is_short();
  for (size_t i = 0; inlined && i < run->arguments.size(); ++i) {
    inlined = run->arguments[i]->completion.ready() && run->arguments[i]->completion.status().ok();
  }
  if (inlined) {
    try {
      run->run();
    } catch (...) {
      check(current_status(Code::Internal));
    }
    for (const CellPointer& output : run->outputs) output->completion.set_alone();
    if (args.complete != nullptr) args.complete[d] = ready_event();
  } else {
    if (args.complete != nullptr) {
      run->done = std::make_shared<Completion>();
      args.complete[d] = make_event(run->done);
    }
    start_later(run);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    args.outputs[d][i] = new Buffer(device->default_memory(), types[i], run->outputs[i]);
  }
}

void execute_together(const LoadedExecutable& loaded, LoadedExecutableExecuteArgs& args) {
  const ProgramPointer& program = loaded.program;
  auto run = make_run(program, args.options, *loaded.devices[0]);
  run->devices = loaded.devices.size();
  for (size_t d = 0; d < run->devices; ++d) {
    take_arguments(*run, args.arguments == nullptr ? nullptr : args.arguments[d],
                   args.argument_count, args.options);
  }
  run->done = std::make_shared<Completion>();
  for (size_t d = 0; d < run->devices; ++d) {
    for (size_t i = 0; i < program->outputs().size(); ++i) {
      const ArrayTypePointer& type = program->outputs()[i];
      run->outputs.push_back(std::make_shared<Cell>(type));
      args.outputs[d][i] =
          new Buffer(loaded.devices[d]->default_memory(), type, run->outputs.back());
    }
    if (args.complete != nullptr) args.complete[d] = make_event(run->done);
  }
  start_later(run);
}

}  // namespace

void loaded_executable_execute(LoadedExecutableExecuteArgs& args) {
  const LoadedExecutable& loaded = *args.executable;
  const ProgramPointer& program = loaded.live_program();
  if (args.device != nullptr) {
    require(args.device_count == 1, program->name(), ": expected arguments of one device, got ",
            args.device_count);
    return execute_on(program, args, 0, args.device);
  }
  require(args.device_count == loaded.devices.size(), program->name(), ": expected arguments of ",
          loaded.devices.size(), " devices, got ", args.device_count);
  if (loaded.devices.size() > 1) return execute_together(loaded, args);
  for (size_t d = 0; d < args.device_count; ++d) execute_on(program, args, d, loaded.devices[d]);
}

}  // namespace lamella::pjrt
