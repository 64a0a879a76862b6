// The extension of layouts: texts such as "{1,0}", which JAX parses.
#include "lamella/pjrt/buffer.h"
#include "lamella/pjrt/extensions.h"
#include "lamella/pjrt/program.h"
#include "lamella/pjrt/status.h"

namespace lamella::pjrt {
namespace {

void destroy(LayoutDestroyArgs& args) { delete args.layout; }
void serialize(LayoutSerializeArgs& args) { hand_out(args.layout->text, args); }
void of_default(LayoutDefaultArgs& args) {
  args.layout = new MemoryLayout{hlo::braced(hlo::row_major(static_cast<int64_t>(args.dims.size)))};
}
void of_buffer(LayoutOfBufferArgs& args) {
  args.layout = new MemoryLayout{args.buffer->type->layout_text()};
}
void give(std::vector<MemoryLayout*> const& layouts, LayoutsOfExecutableArgs& args) {
  args.count = layouts.size();
  args.layouts = const_cast<MemoryLayout**>(layouts.data());
}
void of_outputs(LayoutsOfExecutableArgs& args) {
  give(args.executable->program->lists().output_layouts, args);
}
void of_parameters(LayoutsOfExecutableArgs& args) {
  give(args.executable->program->lists().parameter_layouts, args);
}

}  // namespace

LayoutsExtension layouts_extension() {
  return {{sizeof(LayoutsExtension), ExtensionType::Layouts, nullptr},
          called<LayoutDestroyArgs, destroy>,
          called<LayoutSerializeArgs, serialize>,
          called<LayoutDefaultArgs, of_default>,
          called<LayoutOfBufferArgs, of_buffer>,
          called<LayoutDefaultArgs, of_default>,
          called<LayoutsOfExecutableArgs, of_outputs>,
          called<LayoutsOfExecutableArgs, of_parameters>};
}

}  // namespace lamella::pjrt
