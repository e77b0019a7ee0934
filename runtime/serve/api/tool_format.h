#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/answer_request.h"
#include "serve/api/tools.h"

namespace cria::serve {

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

// How models of a family write calls of tools: where a call begins, what it consists of, and how it
// is read back.
class ToolFormat {
 public:
  virtual ~ToolFormat() = default;

  // What stands before a call. It is either a text or a control token, of which the detokenizer
  // makes no text. "": a call is the whole answer.
  virtual std::string_view opening() const = 0;
  // Whether an answer that begins with an object is a call, without the opening.
  virtual bool may_be_bare() const { return false; }
  // The next part of a call whose parts so far have these texts, without what was forced; nothing
  // at its end.
  virtual std::optional<CallPart> NextPart(const ToolUse& use,
                                           std::span<const std::string> texts) const = 0;
  // What stands behind a call.
  virtual std::string_view closing() const { return ""; }
  // Whether text, and so another call, may follow a call; otherwise the answer is over.
  virtual bool goes_on() const { return false; }
  // Reads the calls of a text that nothing constrained, which begins behind the first opening.
  // Nothing if it is no well-formed call of one of the tools.
  virtual std::optional<std::vector<ToolCall>> Parse(const ToolUse& use,
                                                     std::string_view text) const = 0;
  // Whether the template knows the variable `tools`; otherwise the tools are described in a system
  // message (DescribeTools).
  bool template_knows_tools = true;
};

// Whether the template shows the model what tools there are.
bool KnowsTools(const ChatTemplate& chat_template);

// The format that the text of a chat template shows. Templates that know no tools get that of
// Hermes, in which they are described in words.
std::unique_ptr<ToolFormat> FindToolFormat(std::string_view template_source,
                                           bool template_reads_tools);

std::unique_ptr<ToolFormat> MakeLlamaFormat();
std::unique_ptr<ToolFormat> MakeHermesFormat();
std::unique_ptr<ToolFormat> MakeMistralFormat();
std::unique_ptr<ToolFormat> MakeMistralArgumentsFormat();

// For templates without tools: turns them, calls and results into text of messages.
void DescribeTools(const ToolUse& use, std::vector<ChatMessage>& messages);

// ---- For the formats ----

// The schema of an object {"name": …, <arguments>: …} that calls one of the tools.
Json CallSchema(const ToolUse& use, std::string_view arguments_key);
// The schema of a list of such objects.
Json CallListSchema(const ToolUse& use, std::string_view arguments_key);
// Such an object, of which keys other than these two are ignored; nothing if it is none or calls
// no known tool. `alternative` is another name of the arguments.
std::optional<ToolCall> CallOf(const ToolUse& use, const Json& object,
                               std::string_view arguments_key, std::string_view alternative);
// The JSON text; nothing if it is not JSON.
std::optional<Json> TryReadJson(std::string_view text);

}  // namespace cria::serve
