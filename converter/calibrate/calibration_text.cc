#include "converter/calibrate/calibration_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/format.h"
#include "core/numeric.h"

namespace cria {
namespace {

Result<std::vector<ChatMessage>> ReadConversation(std::string_view line, size_t number) {
  const auto fail = [&](std::string_view what) {
    return Fail(ErrorCode::kUsage,
                Format("line {} of the calibration text {}; a file that begins with {{ or [ is "
                       "read as conversations, one in each line",
                       number, what));
  };
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail("is not JSON");
  const auto& messages = json.is_object() && json.contains("messages") ? json["messages"] : json;
  if (!messages.is_array()) return fail("has no list of messages");
  std::vector<ChatMessage> conversation;
  for (const auto& message : messages) {
    const auto text_of = [&](const char* key) {
      const bool is_text = message.is_object() && message.contains(key) && message[key].is_string();
      return is_text ? &message[key].template get_ref<const std::string&>() : nullptr;
    };
    const std::string* const role = text_of("role");
    const std::string* const content = text_of("content");
    if (role == nullptr || content == nullptr) {
      return fail("has a message without the texts role and content");
    }
    conversation.push_back({*role, *content});
  }
  return conversation;
}

// The tokens of all conversations, one after another.
Result<std::vector<int32_t>> EncodeConversations(std::string_view lines, const Tokenizer& tokenizer,
                                                 const ChatTemplate& chat_template) {
  std::vector<int32_t> ids;
  for (size_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    CRIA_ASSIGN_OR_RETURN(const std::vector<ChatMessage> conversation,
                          ReadConversation(line, number));
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> encoded,
                          chat_template.Encode(tokenizer, conversation));
    ids.insert(ids.end(), encoded.begin(), encoded.end());
  }
  return ids;
}

}  // namespace

size_t CalibrationWindowTokens(const ModelConfig& config, size_t num_tokens,
                               const TextNeeds& needs) {
  return std::min(
      {kMaxCalibrationWindowTokens, config.longest_context(), num_tokens / needs.num_windows});
}

size_t CalibrationTokensFor(const ModelConfig& config, size_t rows_per_input) {
  size_t inputs = std::max<size_t>(
      {config.hidden_size, config.query_channels(), config.linear_value_channels()});
  const bool has_dense_layers =
      config.num_experts == 0 || std::ranges::any_of(config.layer_kinds, &LayerKind::dense_mlp);
  if (has_dense_layers) inputs = std::max<size_t>(inputs, config.intermediate_size);
  inputs = std::max<size_t>(inputs, config.shared_expert_intermediate_size);
  size_t tokens = rows_per_input * inputs;
  if (config.num_experts != 0) {
    const size_t of_expert = std::max(config.hidden_size, config.moe_intermediate_size);
    const size_t rows = rows_per_input * of_expert;
    tokens = std::max(
        tokens, DivideRoundingUp(rows * config.num_experts, size_t{config.num_experts_per_tok}));
  }
  return tokens;
}

size_t UsualCalibrationTokens(const ModelConfig& config) {
  return std::max<size_t>(16384, CalibrationTokensFor(config, 4));
}

Result<CalibrationTokens> EncodeCalibrationText(std::string_view text, const ModelConfig& config,
                                                const Tokenizer& tokenizer,
                                                const ChatTemplate& chat_template,
                                                size_t max_tokens, const TextNeeds& needs) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_chats =
      first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool begins_with_bos =
      !is_chats && vocabulary.add_bos_token && vocabulary.bos_token_id >= 0;
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        is_chats ? EncodeConversations(text, tokenizer, chat_template)
                                 : tokenizer.Encode(text, {.add_bos = false}));
  if (ids.size() < needs.num_tokens) {
    return Fail(ErrorCode::kUsage,
                Format("the calibration text has {} tokens; at least {} are needed, and about "
                       "{} are enough for this model",
                       ids.size(), needs.num_tokens, UsualCalibrationTokens(config)));
  }
  CalibrationTokens tokens;
  tokens.window_tokens = CalibrationWindowTokens(config, std::min(ids.size(), max_tokens), needs);
  const size_t taken = tokens.window_tokens - (begins_with_bos ? 1 : 0);
  const size_t all_windows = ids.size() / taken;
  const size_t num_windows =
      std::min(all_windows, std::max(needs.num_windows, max_tokens / tokens.window_tokens));
  tokens.ids.reserve(num_windows * tokens.window_tokens);
  for (size_t i = 0; i < num_windows; ++i) {
    const size_t begin = i * all_windows / num_windows * taken;
    if (begins_with_bos) tokens.ids.push_back(vocabulary.bos_token_id);
    tokens.ids.insert(tokens.ids.end(), ids.begin() + static_cast<ptrdiff_t>(begin),
                      ids.begin() + static_cast<ptrdiff_t>(begin + taken));
  }
  return tokens;
}

}  // namespace cria
