// Links for a load address that is not known yet, with LLVM's linker: see Note [Images]. The linker
// is given an address for the block and far-away addresses for the functions that the code calls,
// so that every call goes through the block's table of addresses.
#include "lamella/graph/compiler/link.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <cstring>
#include <unordered_map>

#include "lamella/core/error.h"

namespace lamella::hlo::compiler {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;

constexpr uint64_t kBlock = uint64_t{1} << 32;
constexpr uint64_t kOutside = uint64_t{1} << 44;
constexpr uint64_t kPage = 4096;

// Allocates one block for the graph, with its segments aligned to pages.
class OneBlock final : public jitlink::JITLinkMemoryManager {
 public:
  explicit OneBlock(std::string* block) : block_(*block) {}
  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph,
                OnAllocatedFunction done) override {
    jitlink::BasicLayout layout(graph);
    uint64_t size = 0;
    for (auto& [group, segment] : layout.segments()) {
      segment.Addr = ExecutorAddr(kBlock + size);
      size += (segment.ContentSize + segment.ZeroFillSize + kPage - 1) / kPage * kPage;
    }
    block_.assign(size, '\0');
    for (auto& [group, segment] : layout.segments()) {
      segment.WorkingMem = block_.data() + (segment.Addr.getValue() - kBlock);
    }
    if (llvm::Error error = layout.apply()) return done(std::move(error));
    done(std::make_unique<Done>());
  }
  void deallocate(std::vector<FinalizedAlloc> all, OnDeallocatedFunction done) override {
    for (FinalizedAlloc& one : all) one.release();
    done(llvm::Error::success());
  }

 private:
  struct Done final : InFlightAlloc {
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override { done(FinalizedAlloc(ExecutorAddr(kBlock))); }
  };
  std::string& block_;
};

class Linking final : public jitlink::JITLinkContext {
 public:
  Linking(const std::vector<std::string>& names, CodeImage* image, std::string* failure)
      : JITLinkContext(nullptr),
        names_(names),
        image_(*image),
        failure_(*failure),
        memory_(&image->block) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override { failure_ = llvm::toString(std::move(error)); }
  void lookup(const LookupMap& symbols,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> done) override {
    jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : symbols) {
      found[name] = {ExecutorAddr(kOutside + 16 * found.size()), llvm::JITSymbolFlags::Exported};
    }
    done->run(std::move(found));
  }
  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    std::unordered_map<std::string_view, uint64_t> at;
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (symbol->hasName()) at[symbol->getName()] = symbol->getAddress().getValue() - kBlock;
    }
    for (const std::string& name : names_) image_.entries.push_back(at.at(name));
    for (jitlink::Block* block : graph.blocks()) {
      for (const jitlink::Edge& edge : block->edges()) note(graph, *block, edge);
    }
    return llvm::Error::success();
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc memory) override {
    memory.release();
  }

 private:
  void note(jitlink::LinkGraph& graph, jitlink::Block& block, const jitlink::Edge& edge) {
    if (!edge.isRelocation()) return;
    std::string_view kind = graph.getEdgeKindName(edge.getKind());
    const jitlink::Symbol& target = edge.getTarget();
    if (kind == "Pointer64") {
      uint64_t offset = block.getAddress().getValue() + edge.getOffset() - kBlock;
      image_.addresses.push_back({offset, target.isExternal() ? target.getName().str() : ""});
    } else if (target.isExternal()) {
      failure_ = str("unsupported relocation ", kind, " to ", target.getName().str());
    }
  }

  const std::vector<std::string>& names_;
  CodeImage& image_;
  std::string& failure_;
  OneBlock memory_;
};

}  // namespace

void link_image(std::span<const char> object, const std::vector<std::string>& names,
                CodeImage* image) {
  llvm::MemoryBufferRef bytes(llvm::StringRef(object.data(), object.size()), "lamella");
  auto graph = jitlink::createLinkGraphFromObject(bytes);
  LAMELLA_INTERNAL_ASSERT(static_cast<bool>(graph),
                          "compiler: ", llvm::toString(graph.takeError()));
  std::string failure;
  // Its callbacks complete at once, so linking is complete when this returns.
  jitlink::link(std::move(*graph), std::make_unique<Linking>(names, image, &failure));
  LAMELLA_INTERNAL_ASSERT(failure.empty(), "compiler: ", failure);
  // Addresses inside the block become offsets from its beginning.
  for (const CodeImage::Address& one : image->addresses) {
    if (!one.name.empty()) continue;
    uint64_t value = 0;
    std::memcpy(&value, image->block.data() + one.offset, sizeof(value));
    value -= kBlock;
    std::memcpy(image->block.data() + one.offset, &value, sizeof(value));
  }
}

}  // namespace lamella::hlo::compiler
