#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria::server {

// What is open around a call, and is closed behind it.
struct CallTags {
  std::string_view closing;  // Such as </tool_call>.
  size_t fence_bytes = 0;    // Backticks of a fence of Markdown.
  bool is_tagged = false;    // An opening such as <tool_call> came before.
};

// What text before a call is: white space, an opening, a fence; and behind another call, what
// closes that.
struct CallPrefix {
  enum class Next : uint8_t {
    kNoCall,
    kPerhaps,  // It is none so far, and may become one.
    kJson,     // An object or a list begins.
    kName,     // The name of Mistral's name[ARGS]{…} begins.
  };

  Next next = Next::kNoCall;
  size_t begin = 0;         // Where the JSON or the name begins.
  size_t closed_bytes = 0;  // The part of the text that closes the call before.
  CallTags tags = {};       // What is open then.
};

struct CallPrefixOptions {
  bool takes_bare = true;    // JSON without an opening may be a call.
  bool is_in_fence = false;  // The text is in a fence, which is no call's.
};

// Longer text before a call is none.
inline constexpr size_t kMaxCallPrefixBytes = 512;

// Whether the byte may begin such a text, white space aside.
bool MayBeginCall(char byte, bool takes_bare);
// Reads text whose last byte is the first one of which that is not known. `last` is what the call
// before has opened; null: there is none.
CallPrefix ReadCallPrefix(std::string_view text, const CallTags* last,
                          const CallPrefixOptions& options);
// Whether the text begins with a fence, after white space.
bool BeginsWithFence(std::string_view text);

}  // namespace cria::server
