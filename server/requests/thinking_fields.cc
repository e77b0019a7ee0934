#include "server/requests/thinking_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "server/requests/request_error.h"
#include "text/reasoning.h"
#include "text/thinking_variables.h"

namespace cria::server {
namespace {

constexpr std::string_view kEnableThinking = "enable_thinking";
constexpr std::string_view kEffort = "reasoning_effort";
constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};
constexpr std::array<std::string_view, 6> kBudgets = {
    "reasoning_budget",      "reasoning_budget_tokens", "thinking_budget_tokens",
    "thinking_token_budget", "thinking_budget",         "max_thinking_tokens"};
constexpr std::array<std::string_view, 4> kOllamaLevels = {"low", "medium", "high", "max"};

// Templates without levels have reasoning or none.
void SetEffort(const ChatTemplate& chat_template, const std::string& effort,
               const std::string& field, ChatRequest& request) {
  if (chat_template.Reads(kEffort)) {
    request.template_variables[kEffort] = effort;
  } else {
    SetThinking(chat_template, effort != "none", field, request);
  }
}

void ReadEffort(const ChatTemplate& chat_template, const Fields& fields, std::string_view name,
                ChatRequest& request) {
  const std::optional<std::string> effort = fields.String(name);
  if (!effort) return;
  const std::string field = fields.PathOf(name);
  if (!std::ranges::contains(kEfforts, *effort)) {
    RefuseField(field, R"(is not "none", "minimal", "low", "medium", "high", "xhigh" or "max")");
  }
  SetEffort(chat_template, *effort, field, request);
}

void ReadSwitch(const ChatTemplate& chat_template, const Fields& fields, std::string_view name,
                ChatRequest& request) {
  if (const std::optional<bool> is_on = fields.Bool(name)) {
    SetThinking(chat_template, *is_on, fields.PathOf(name), request);
  }
}

}  // namespace

void SetThinking(const ChatTemplate& chat_template, bool is_on, const std::string& field,
                 ChatRequest& request) {
  const std::string_view variable = ThinkingVariable(chat_template);
  if (!variable.empty()) {
    request.template_variables[variable] = is_on;
  } else if (is_on) {
    RefuseField(field,
                "is not supported: this model's chat template has no reasoning that could be "
                "turned on");
  }
}

void ReadThinking(const ChatTemplate& chat_template, const Fields& fields, ChatRequest& request) {
  ReadEffort(chat_template, fields, kEffort, request);
  if (const auto reasoning = fields.Object("reasoning")) {
    ReadEffort(chat_template, *reasoning, "effort", request);
    ReadSwitch(chat_template, *reasoning, "enabled", request);
  }
  ReadSwitch(chat_template, fields, kEnableThinking, request);
  if (const auto variables = fields.Object("chat_template_kwargs")) {
    // What is neither true nor false is refused here under the field's name, and otherwise by the
    // template.
    for (const std::string_view name : kThinkingVariables) variables->Bool(name);
    const std::optional<bool> is_on = variables->Bool(kEnableThinking);
    // A variable that the template reads has been set.
    if (is_on && !chat_template.Reads(kEnableThinking)) {
      SetThinking(chat_template, *is_on, variables->PathOf(kEnableThinking), request);
    }
  }
}

void ReadReasoningBudget(const Fields& fields, AnswerOptions& options) {
  for (const std::string_view name : kBudgets) {
    const auto budget = fields.Integer(name, -1, std::numeric_limits<int32_t>::max());
    if (budget && *budget >= 0) options.reasoning_budget = static_cast<size_t>(*budget);
  }
}

void ReadOllamaThink(const ChatTemplate& chat_template, const Fields& fields,
                     ChatRequest& request) {
  const Json* const think = fields.Find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) return SetThinking(chat_template, think->get<bool>(), "think", request);
  if (!think->is_string() || !std::ranges::contains(kOllamaLevels, think->get<std::string>())) {
    RefuseField("think", R"(is not true, false, "low", "medium", "high" or "max")");
  }
  SetEffort(chat_template, think->get<std::string>(), "think", request);
}

}  // namespace cria::server
