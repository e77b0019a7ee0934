#pragma once

#include <span>
#include <string>

#include "cria/error.h"
#include "text/chat_template.h"

namespace cria::cli {

// Writes a conversation for people or other programs into a new file: as JSON, in the form that
// --messages reads, if the name ends with ".json", otherwise as Markdown with a heading for each
// message. Fails if the file exists or cannot be written.
Status ExportMessages(std::span<const ChatMessage> messages, const std::string& path);

}  // namespace cria::cli
