#pragma once

#include <cstddef>
#include <span>

#include "core/collective.h"
#include "cria/error.h"

namespace cria::ranks {

// Lets all ranks go on or none. Every rank tells how it fared, and what must be the same
// everywhere, such as the digest of its model, in equally many bytes. If a rank failed, or has
// other bytes than rank 0, every rank returns an error; that of rank 0 names the rank. `what` is
// what the bytes are, for the sentence: "another model".
Status Agree(Collective& collective, const Status& own, std::span<const std::byte> same,
             std::string_view what);

}  // namespace cria::ranks
