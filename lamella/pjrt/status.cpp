// Errors: PJRT's functions on them, and the codes of exceptions.
#include "lamella/pjrt/status.h"

#include <new>

#include "lamella/pjrt/functions.h"

namespace lamella::pjrt {

struct Error {
  const ErrorTable* table;
  Status status;
};

namespace {

const Error& of(const Error* error) { return *error; }
constexpr ErrorTable kTable = {
    sizeof(ErrorTable),
    sizeof(Error),
    nullptr,
    [](Error* error) { delete error; },
    [](const Error* error, const char** text, size_t* size) {
      *text = of(error).status.text.data();
      *size = of(error).status.text.size();
    },
    [](const Error* error) { return of(error).status.code; },
    [](const Error*, PayloadVisitor, void*) {},
};

Code code_of(const lamella::Error& error, Code otherwise) {
  switch (error.status()) {
    case LAMELLA_NOT_IMPLEMENTED:
      return Code::Unimplemented;
    case LAMELLA_OUT_OF_MEMORY:
      return Code::ResourceExhausted;
    case LAMELLA_INTERNAL_ERROR:
      return Code::Internal;
    default:
      return otherwise;
  }
}

}  // namespace

void check(const Status& status) {
  if (!status.ok()) throw Failure(status);
}

Status current_status(Code otherwise) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.status();
  } catch (const lamella::Error& error) {
    return {code_of(error, otherwise), error.what()};
  } catch (const std::bad_alloc&) {
    return {Code::ResourceExhausted, "out of memory"};
  } catch (const std::exception& error) {
    return {Code::Internal, error.what()};
  } catch (...) {
    return {Code::Internal, "an unknown error"};
  }
}

Error* make_error(const Status& status) {
  return status.ok() ? nullptr : new Error{&kTable, status};
}
Status take(Error* error) {
  if (error == nullptr) return {};
  // The error may be of another library, whose table reads it.
  const ErrorTable& table = *error->table;
  const char* text = nullptr;
  size_t size = 0;
  table.message(error, &text, &size);
  Status status{table.code(error), std::string(text, size)};
  table.destroy(error);
  return status;
}

void error_destroy(ErrorDestroyArgs& args) { delete args.error; }
void error_message(ErrorMessageArgs& args) { args.message = borrow(args.error->status.text); }
void error_get_code(ErrorGetCodeArgs& args) { args.code = args.error->status.code; }
void error_for_each_payload(ErrorForEachPayloadArgs& /*args*/) {}

}  // namespace lamella::pjrt
