#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/calls/call_form.h"
#include "server/requests/tools.h"

namespace cria::server {

// What is read of a call of a CallForm before its arguments: what closes the call before, what
// opens this one, and the name.
struct CallHead {
  enum class Next : uint8_t {
    kNoCall,
    kPerhaps,    // More text is needed to say whether it is the head of a call.
    kName,       // The opening is complete, and the name of a tool must follow: it is certain.
    kArguments,  // The arguments begin.
  };

  Next next = Next::kNoCall;
  size_t begin = 0;         // Where the name or the arguments begin.
  size_t closed_bytes = 0;  // The part of the text that closes the call before.
  std::string name = {};
};

enum class CallPlace : uint8_t {
  kText,        // Before the first call.
  kBehindCall,  // Behind arguments; what closes the call may still come.
};

// Longer text is no head.
inline constexpr size_t kMaxCallHeadBytes = 512;

// Whether the byte may begin the head of a call in a text.
bool MayBeginHead(const CallForm& form, char byte);
// Reads the head with which the text begins. The text grows by one byte from call to call, so that
// what follows the head is one byte at most.
CallHead ReadCallHead(const CallForm& form, const ToolUse& use, CallPlace place,
                      std::string_view text);

}  // namespace cria::server
