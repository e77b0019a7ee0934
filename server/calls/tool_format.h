#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/calls/call_form.h"
#include "server/requests/answer_request.h"
#include "server/requests/tools.h"

namespace cria::server {

// A part of a call: text that always stands there, and then text of the model's that matches
// `shape`.
struct CallPart {
  enum class Content : uint8_t {
    kCalls,      // One object with a name and arguments, or a list of them.
    kName,       // A name alone.
    kArguments,  // The arguments alone.
  };

  std::string forced;
  Content content = Content::kCalls;
  AnswerShape shape;
};

// How models of a family write calls of tools, when a call is required. Calls that a model writes
// of its own accord are found in every form (CallFinder).
class ToolFormat {
 public:
  virtual ~ToolFormat() = default;

  // The next part of a call whose parts so far have these texts, without what was forced; nothing
  // at its end.
  virtual std::optional<CallPart> NextPart(const ToolUse& use,
                                           std::span<const std::string> texts) const = 0;
  // What stands behind a call.
  virtual std::string_view closing() const { return ""; }
  // Whether another call may follow a call; otherwise the answer is over.
  virtual bool goes_on() const { return false; }
  // The row of CallForms(); null: calls are JSON objects with a name.
  virtual const CallForm* form() const { return nullptr; }
  // Whether the template knows the variable `tools`; otherwise the tools are described in a system
  // message (DescribeTools).
  bool template_knows_tools = true;
};

// Whether the template shows the model what tools there are.
bool KnowsTools(const ChatTemplate& chat_template);

// Whether the template's text mentions a form of calls that CallFinder finds without a CallForm.
bool KnowsCallForm(const ChatTemplate& chat_template);

// The format that the text of a chat template shows. Templates that know no tools get that of
// Hermes, in which they are described in words.
std::unique_ptr<ToolFormat> FindToolFormat(std::string_view template_source,
                                           bool template_reads_tools);

std::unique_ptr<ToolFormat> MakeLlamaFormat();
std::unique_ptr<ToolFormat> MakeHermesFormat();
std::unique_ptr<ToolFormat> MakeMistralFormat();
std::unique_ptr<ToolFormat> MakeMistralArgumentsFormat();
std::unique_ptr<ToolFormat> MakeGraniteFormat();
// The form must outlive the object.
std::unique_ptr<ToolFormat> MakeFormFormat(const CallForm& form);

// For templates without tools: turns them, calls and results into text of messages.
void DescribeTools(const ToolUse& use, std::vector<ChatMessage>& messages);

// ---- For the formats ----

// The schema of an object {"name": …, <arguments>: …} that calls one of the tools, as text.
std::string CallSchema(const ToolUse& use, std::string_view arguments_key);
// The schema of a list of such objects.
std::string CallListSchema(const ToolUse& use, std::string_view arguments_key);
// A schema of the property of an object, with what it refers to.
Json SchemaOfProperty(const Json& schema, std::string_view name);

}  // namespace cria::server
