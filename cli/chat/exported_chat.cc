#include "cli/chat/exported_chat.h"

#include <filesystem>
#include <system_error>

#include "core/format.h"
#include "core/output_file.h"
#include "messages/json_text.h"

namespace cria::cli {
namespace {

std::string AsJson(std::span<const ChatMessage> messages) {
  std::string list;
  for (const ChatMessage& message : messages) {
    // Copied as text, numbers keep all their digits.
    std::string more = message.fields;
    if (more.starts_with('{')) more.erase(0, 1);
    if (more.ends_with('}')) more.pop_back();
    list +=
        Format("{}  {{\"role\": {}, \"content\": {}{}{}}}", list.empty() ? "" : ",\n",
               WriteJson(message.role), WriteJson(message.content), more.empty() ? "" : ", ", more);
  }
  return Format("[\n{}\n]\n", list);
}

std::string AsMarkdown(std::span<const ChatMessage> messages) {
  std::string text;
  for (const ChatMessage& message : messages) {
    text += Format("{}## {}\n\n{}\n", text.empty() ? "" : "\n", message.role, message.content);
    // Calls of tools and reasoning have no form of their own in Markdown.
    if (!message.fields.empty()) text += Format("\n```json\n{}\n```\n", message.fields);
  }
  return text;
}

}  // namespace

Status ExportMessages(std::span<const ChatMessage> messages, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    return Fail(ErrorCode::kUsage, Format("{}: exists; choose another name", path));
  }
  const std::string text = path.ends_with(".json") ? AsJson(messages) : AsMarkdown(messages);
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, text.size()));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace cria::cli
