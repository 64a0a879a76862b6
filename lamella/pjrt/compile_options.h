// CompileOptionsProto: the fields that matter here, read and written as bytes of protobuf.
#pragma once
#include <string>
#include <string_view>

#include "lamella/pjrt/program.h"

namespace lamella::pjrt {

// The replicas, partitions and devices of a CompileOptionsProto. Throws if it is malformed or names
// an option that XLA does not have.
Assignment assignment_of(std::string_view compile_options);
// A DeviceAssignmentProto.
std::string device_assignment_proto(const Assignment& assignment);
// Messages as a writer of bytes: a field of a number, and a field of bytes.
void add_number(std::string& to, int field, uint64_t number);
void add_bytes(std::string& to, int field, std::string_view bytes);

}  // namespace lamella::pjrt
