#pragma once

#include "serve/api/answer_request.h"
#include "serve/api/fields.h"

namespace cria::serve {

// The request of OpenAI's chat completions, with llama-server's additions.
ChatRequest ReadOpenAiChat(const Fields& request);

struct StreamFields {
  bool is_streamed = false;
  bool has_usage = false;  // At the end of the stream.
};
StreamFields ReadStreamFields(const Fields& request);

}  // namespace cria::serve
