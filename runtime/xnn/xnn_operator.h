#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cria/error.h"

struct xnn_operator;

namespace cria::xnn {

struct OperatorDeleter {
  void operator()(xnn_operator* op) const;
};
using OperatorHandle = std::unique_ptr<xnn_operator, OperatorDeleter>;

// Memory that XNNPACK takes for an operator, beside packed weights; measured.
#if defined(__x86_64__)
inline constexpr uint64_t kOperatorBytes = 2032;
#else
inline constexpr uint64_t kOperatorBytes = 3072;
#endif

// Readies XNNPACK for this processor, once for the whole process. Every function of this folder
// that creates an operator calls it.
Status Initialize();

// Turns an xnn_status, passed as an int since XNNPACK's header stays inside this folder's sources,
// into a Status that names `action`.
Status CheckStatus(int xnn_status, std::string_view action);

}  // namespace cria::xnn
