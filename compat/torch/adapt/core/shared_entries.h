// SharedEntries: the reference-counted entries that copies of a List or Dict share, as in PyTorch.
#pragma once
#include <stdexcept>

#include "lamella/core/error.h"
#include "lamella/core/object_ref.h"

namespace lamella::detail {

template <class Entries>
class SharedEntries {
 public:
  SharedEntries() : SharedEntries(Entries()) {}
  explicit SharedEntries(Entries entries)
      : node_(ObjectRef<Node>::adopt(new Node(std::move(entries)))) {}

  // Moving copies, so that an object that was moved from still has its entries.
  SharedEntries(const SharedEntries&) = default;
  SharedEntries& operator=(const SharedEntries&) = default;

  Entries& operator*() const { return node_->entries; }
  Entries* operator->() const { return &**this; }
  bool is(const SharedEntries& other) const { return node_ == other.node_; }
  size_t use_count() const { return node_.use_count(); }

 private:
  struct Node : lamella_object {
    explicit Node(Entries given) : lamella_object{1, 0, &end}, entries(std::move(given)) {}
    static void end(lamella_object* object) { delete static_cast<Node*>(object); }
    Entries entries;
  };

  ObjectRef<Node> node_;
};

// The error for an entry that is not there; the same type as from a container of the standard.
template <class... A>
[[noreturn]] LAMELLA_COLD void throw_out_of_range(const A&... parts) {
  throw std::out_of_range(str(parts...));
}

}  // namespace lamella::detail
