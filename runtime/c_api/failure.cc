#include "c_api/failure.h"

#include <cxxabi.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "c_api/remedy.h"
#include "core/format.h"

namespace cria::c_api {
namespace {

thread_local std::string owned_message;
// The message in memory of this thread, or one that needs no memory.
thread_local const char* last_message = "";

cria_status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return CRIA_ERROR_USAGE;
    case ErrorCode::kInvalidFile:
      return CRIA_ERROR_INVALID_FILE;
    case ErrorCode::kUnsupported:
      return CRIA_ERROR_UNSUPPORTED;
    case ErrorCode::kNotFound:
      return CRIA_ERROR_NOT_FOUND;
    case ErrorCode::kIo:
      return CRIA_ERROR_IO;
    case ErrorCode::kOutOfMemory:
      return CRIA_ERROR_OUT_OF_MEMORY;
    case ErrorCode::kOutOfRange:
      return CRIA_ERROR_OUT_OF_RANGE;
    case ErrorCode::kCancelled:
      return CRIA_ERROR_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return CRIA_ERROR_INTERNAL;
}

cria_status Finish(const Status& status) {
  if (status) return CRIA_OK;
  owned_message = Sentence(status.error());
  last_message = owned_message.c_str();
  return StatusOf(status.error().code());
}

// This and the next function allocate nothing.
cria_status FinishOutOfMemory() {
  last_message = "there is not enough memory for this call";
  return CRIA_ERROR_OUT_OF_MEMORY;
}

cria_status FinishException(const char* what) {
  static thread_local char message[256];
  std::snprintf(message, sizeof message, "an exception ended the call; check its callback: %s",
                what);
  last_message = message;
  return CRIA_ERROR_INTERNAL;
}

}  // namespace

cria_status GuardedCall(Status (*function)(const void* call), const void* call) {
  try {
    return Finish(function(call));
  } catch (const std::bad_alloc&) {
    return FinishOutOfMemory();
  } catch (const std::exception& exception) {
    return FinishException(exception.what());
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;  // A cancelled thread ends by this exception, which must not be caught.
#endif
  } catch (...) {
    return FinishException("it is not a std::exception");
  }
}

Status FailNull(std::string_view name) {
  return Fail(ErrorCode::kUsage, Format("{} is NULL", name));
}

}  // namespace cria::c_api

const char* cria_error_message(void) { return cria::c_api::last_message; }

const char* cria_version(void) { return CRIA_VERSION; }
