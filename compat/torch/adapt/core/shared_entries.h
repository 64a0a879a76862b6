// SharedEntries: the reference-counted entries that copies of a List or Dict share, as in PyTorch.
#pragma once
#include "lamella/core/object_ref.h"

namespace lamella::detail {

template <class Entries>
class SharedEntries {
 public:
  SharedEntries() : SharedEntries(Entries()) {}
  explicit SharedEntries(Entries entries)
      : node_(ObjectRef<Node>::adopt(new Node(std::move(entries)))) {}

  // An object that was moved from gets new, empty entries.
  Entries& operator*() const {
    if (!node_) node_ = SharedEntries().node_;
    return node_->entries;
  }
  Entries* operator->() const { return &**this; }
  bool is(const SharedEntries& other) const { return node_ == other.node_; }
  size_t use_count() const { return node_.use_count(); }

 private:
  struct Node : lamella_object {
    explicit Node(Entries given) : lamella_object{1, 0, &end}, entries(std::move(given)) {}
    static void end(lamella_object* object) { delete static_cast<Node*>(object); }
    Entries entries;
  };

  mutable ObjectRef<Node> node_;
};

}  // namespace lamella::detail
