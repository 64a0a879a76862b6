// Texts of statuses.
#include "lamella/graph/builder/status.h"

#include <array>

namespace lamella::hlo {

std::string_view StatusCodeToString(StatusCode code) {
  static constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                              "CANCELLED",
                                                              "UNKNOWN",
                                                              "INVALID_ARGUMENT",
                                                              "DEADLINE_EXCEEDED",
                                                              "NOT_FOUND",
                                                              "ALREADY_EXISTS",
                                                              "PERMISSION_DENIED",
                                                              "RESOURCE_EXHAUSTED",
                                                              "FAILED_PRECONDITION",
                                                              "ABORTED",
                                                              "OUT_OF_RANGE",
                                                              "UNIMPLEMENTED",
                                                              "INTERNAL",
                                                              "UNAVAILABLE",
                                                              "DATA_LOSS",
                                                              "UNAUTHENTICATED"};
  auto at = static_cast<size_t>(code);
  return at < kNames.size() ? kNames[at] : "UNKNOWN";
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return str(StatusCodeToString(code_), ": ", message_);
}
std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

}  // namespace lamella::hlo
