#include "xnn/xnn_operator.h"

#include <xnnpack.h>

#include "core/format.h"
#include "core/platform.h"

namespace cria::xnn {
namespace {

std::string_view StatusName(int status) {
  switch (status) {
    case xnn_status_success:
      return "success";
    case xnn_status_uninitialized:
      return "uninitialized";
    case xnn_status_invalid_parameter:
      return "invalid parameter";
    case xnn_status_invalid_state:
      return "invalid state";
    case xnn_status_unsupported_parameter:
      return "unsupported parameter";
    case xnn_status_unsupported_hardware:
      return "unsupported hardware";
    case xnn_status_out_of_memory:
      return "out of memory";
    case xnn_status_reallocation_required:
      return "reallocation required";
    default:
      return "unknown status";
  }
}

}  // namespace

void OperatorDeleter::operator()(xnn_operator* op) const { xnn_delete_operator(op); }

Status CheckStatus(int status, std::string_view action) {
  if (status == xnn_status_success) return {};
  if (status == xnn_status_unsupported_hardware) {
    return Fail(ErrorCode::kUnsupported,
                Format("XNNPACK does not run on this processor ({} failed)", action));
  }
  const ErrorCode code =
      status == xnn_status_out_of_memory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal;
  return Fail(code, Format("XNNPACK: {} failed: {}", action, StatusName(status)));
}

Status Initialize() {
  static const Status status = [] {
    const xnn_status initialized = xnn_initialize(nullptr);
    // XNNPACK reads from files which processor this is. If it cannot open them, it reports a
    // processor that it does not support.
    if (initialized != xnn_status_success && !platform::CanOpenAnotherFile()) {
      return Status(Fail(ErrorCode::kIo,
                         "XNNPACK cannot read what processor this is: no file descriptor is free; "
                         "close files or raise the limit of open files"));
    }
    return CheckStatus(initialized, "initialization");
  }();
  return status;
}

}  // namespace cria::xnn
