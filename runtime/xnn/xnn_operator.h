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

// Bytes that XNNPACK allocates for an operator in addition to packed weights; measured.
#if defined(__x86_64__)
inline constexpr uint64_t kOperatorBytes = 2032;
#else
inline constexpr uint64_t kOperatorBytes = 3072;
#endif

// Initializes XNNPACK, once for the whole process. Every function of this folder that creates an
// operator calls it.
Status Initialize();

// Converts an xnn_status into a Status that names `action`. The parameter is an int because only
// this folder's sources include XNNPACK's header.
Status CheckStatus(int xnn_status, std::string_view action);

}  // namespace cria::xnn
