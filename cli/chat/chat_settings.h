#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/chat.h"
#include "cria/error.h"

namespace cria::cli {

// An option that can be changed during a chat. It has the name of the flag without its dashes.
struct ChatSetting {
  std::string name;
  std::string value;
};

std::vector<ChatSetting> ChatSettings(const ChatOptions& options);
std::vector<std::string> ChatSettingNames();
// The name, which may be the short one of the flag, as ChatSettings has it.
std::string_view FullSettingName(std::string_view name);

// Changes the option as the flag with this name would. Fails with kUsage if there is no such
// option, or the value is wrong; then nothing has changed.
Status ChangeChatSetting(Chat& chat, std::string_view name, std::string_view value);

}  // namespace cria::cli
