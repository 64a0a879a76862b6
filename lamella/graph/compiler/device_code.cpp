// Device code: emits the kernels of regions for GPUs of NVIDIA, as PTX. Where LLVM was built
// without that target there is none.
#include "lamella/graph/compiler/device_code.h"

#include <llvm/IR/Module.h>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/frame.h"
#include "lamella/graph/compiler/session.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {
namespace {

class DeviceRegion {
 public:
  DeviceRegion(llvm::Module& module, std::string name)
      : name_(std::move(name)), frame_(module, /*vector_bytes=*/16, /*on_device=*/true) {}

  MachineCode emit(const Region& region) {
    int64_t buffers = 0;
    for (const Instruction* i : region.inputs) {
      e_.places[i] = {{Place::Buffer, buffers++, nullptr}};
    }
    std::vector<Wanted> wanted;
    for (const Instruction* i : region.outputs) {
      wanted.push_back({i, {{Place::Buffer, buffers++, nullptr}}});
    }
    e_.temporary_buffer = buffers++;
    table_ = llvm::ArrayType::get(e_.b.getPtrTy(), static_cast<uint64_t>(buffers));
    UnitPlan plan(e_, region.instructions, wanted);
    std::unordered_map<const Instruction*, std::vector<Place>> destination;
    for (const Wanted& one : wanted) plan.place_wanted(one, &destination);
    std::vector<std::vector<Place>> ends(plan.units.size() + 1);
    MachineCode code;
    for (size_t u = 0; u < plan.units.size(); ++u) {
      Unit& unit = plan.units[u];
      std::string names;
      for (const Member& member : unit.members) {
        const Instruction* i = member.instruction;
        names += str(names.empty() ? "" : " ", i->name, member.is_stored ? "" : " (in registers)");
        if (!member.is_stored) continue;
        auto found = destination.find(i);
        if (found != destination.end()) {
          e_.places[i] = found->second;
          continue;
        }
        e_.places[i] = {frame_.temporary(*i->shape)};
        ends[plan.last_use(i, u)].push_back(e_.places[i][0]);
      }
      int64_t elements = 1;
      for (int64_t size : unit.sizes) elements *= size;
      if (elements != 0) {
        begin(str(name_, "_", code.notes.size()));
        end(plan.emit_launch(unit), &code);
        code.notes.push_back(str(unit.rows >= 0 ? "rows: " : "elements: ", names));
      }
      frame_.give_back(ends[u]);
    }
    // Outputs that are other outputs, or inputs, with other dimensions.
    for (const Wanted& one : wanted) {
      const Instruction* i = one.instruction;
      if (e_.places_of(i)[0] == one.places[0] || i->shape->elements() == 0) continue;
      begin(str(name_, "_", code.notes.size()));
      Unit unit;
      unit.sizes = Extent(*i->shape).sizes;
      Member member;
      member.instruction = i;
      unit.members.push_back(member);
      std::vector<Place> from = e_.places_of(i);
      e_.places[i] = one.places;
      end(plan.emit_launch(unit), &code);
      e_.places[i] = from;
      code.notes.push_back(str("copy: ", i->name));
    }
    code.temporary_bytes = frame_.memory.most();
    return code;
  }

 private:
  // A kernel's parameter is the table of addresses.
  void begin(const std::string& name) {
    body_ = Body();
    auto* type = llvm::FunctionType::get(e_.b.getVoidTy(), {e_.b.getPtrTy()}, false);
    body_.function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, e_.module);
    body_.function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    body_.function->setDoesNotThrow();
    body_.function->addParamAttr(0, llvm::Attribute::getWithByValType(e_.context, table_));
    body_.function->addParamAttr(0, llvm::Attribute::getWithAlignment(e_.context, llvm::Align(8)));
    body_.buffers = body_.function->getArg(0);
    e_.body = e_.main_body = &body_;
    e_.b.SetInsertPoint(llvm::BasicBlock::Create(e_.context, "entry", body_.function));
    auto* begin = llvm::BasicBlock::Create(e_.context, "begin", body_.function);
    e_.b.CreateBr(begin);
    e_.b.SetInsertPoint(begin);
  }
  void end(UnitPlan::Launch launch, MachineCode* code) {
    e_.b.CreateRetVoid();
    // So that a block's threads have their registers.
    auto* threads =
        llvm::ConstantAsMetadata::get(e_.b.getInt32(static_cast<uint32_t>(launch.threads)));
    e_.module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(
            llvm::MDNode::get(e_.context, {llvm::ValueAsMetadata::get(body_.function),
                                           llvm::MDString::get(e_.context, "maxntidx"), threads}));
    code->may_share.emplace_back(launch.blocks, launch.threads);
  }

  std::string name_;
  Frame frame_;
  Emitter& e_ = frame_.e;
  Body body_;
  llvm::ArrayType* table_ = nullptr;
};

}  // namespace

std::optional<CodeImage> device_code(std::span<const Region* const> regions) {
  llvm::LLVMContext context;
  llvm::Module module("lamella", context);
  if (!set_target(module, Target::Device)) return std::nullopt;
  CodeImage image;
  for (const Region* region : regions) {
    std::string name = str("region_", image.regions.size());
    image.regions.push_back(DeviceRegion(module, name).emit(*region));
    image.entries.push_back(0);
  }
  image.block = make_assembly(module);
  return image;
}

}  // namespace lamella::hlo::compiler
