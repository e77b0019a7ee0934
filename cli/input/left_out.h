#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace cria::cli {

// "the model has no tokens for 0x04 and 0x0F, which are left out"; "" if it has tokens for all of
// the text.
std::string LeftOutNotice(const Tokenizer& tokenizer, std::string_view text);

}  // namespace cria::cli
