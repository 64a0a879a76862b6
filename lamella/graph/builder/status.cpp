// Texts of statuses.
#include "lamella/graph/builder/status.h"

#include "lamella/graph/hlo/status_code.h"

namespace lamella::hlo {

std::string_view StatusCodeToString(StatusCode code) {
  return status_code_name(static_cast<int>(code));
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return str(StatusCodeToString(code_), ": ", message_);
}
std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

}  // namespace lamella::hlo
