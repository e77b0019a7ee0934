#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/calls/call_fields.h"
#include "server/calls/call_form.h"
#include "server/calls/call_prefix.h"
#include "server/calls/form_reader.h"
#include "server/calls/json_scanner.h"
#include "server/requests/tools.h"

namespace cria::server {

// Finds calls in the text of an answer, while it comes, in every form that is known: objects
// {"name": …, "arguments": {…}} (or "parameters"), alone or in lists, one or several, perhaps
// behind an opening such as <tool_call> or in a fence of Markdown, Mistral's name[ARGS]{…}, and
// those of a CallForm.
//
// An object is a call only if it names a tool of the request and, unless it follows an opening, has
// arguments. Other text is passed on as it is. What may become a call is held back only as long as
// it may. Objects inside of other JSON are no calls.
class CallFinder {
 public:
  struct Listener {
    // Text that is no call.
    std::function<void(std::string_view text)> on_text;
    // A whole call. Returns false if its arguments must be written anew: then they are found.
    std::function<bool(const ToolCall& call)> on_call;
  };
  struct Options {
    bool takes_bare = true;          // Objects without an opening may be calls.
    bool stops_at_arguments = true;  // Others write the arguments; see is_found().
    // Calls in this form are found as well; null: only those that need no CallForm.
    const CallForm* form = nullptr;
  };

  // `use` must outlive it.
  CallFinder(const ToolUse& use, const Options& options, Listener listener);

  // Adds text. What follows the place that is found is ignored. Arguments that end in the text in
  // which they begin are not found: they are read.
  void Append(std::string_view text);
  // Ends the text: passes on what was held back.
  void Flush();

  // Whether a call's arguments begin, which are then to be written by others.
  bool is_found() const { return found_.is_found; }
  // The name of the tool.
  const std::string& name() const { return fields_.name(); }
  // Where the text ends, in bytes since the beginning or the last GoTo….
  size_t begin() const { return found_.begin; }
  // What is known of the arguments, and of the call that is read, or was last read.
  struct Found {
    bool is_near = false;  // They began at `begin`, and others may have to write them.
    bool is_found = false;
    // Others are to write the name of the tool, too: then `begin` is its place.
    bool is_before_name = false;
    size_t begin = 0;
    std::string forced;              // Takes the place of what follows, if it is not empty.
    const CallForm* form = nullptr;  // The form of the call; null: its arguments are JSON.
  };
  const Found& found() const { return found_; }

  // The text goes on behind the arguments that were found, or behind a call that others have
  // written.
  void GoToArgumentsEnd();
  void GoToCallEnd();

 private:
  enum class State : uint8_t {
    kText,
    kPrefix,  // See CallPrefix.
    kName,    // In the name of name[ARGS]{…}.
    kJson,    // In an object or a list that may be calls, or in the arguments of a name.
    kForm,    // In the arguments of a call of the CallForm.
    kOther,   // In JSON that is no call.
  };
  void TakeByte(char byte);
  void TakePrefixByte();
  CallPrefix ReadPrefix() const;
  void TakeNameByte();
  void BeginForm(const CallHead& head);
  void TakeFormByte(char byte);
  void BeginJson(size_t begin);
  void TakeJsonByte(size_t at);
  CallFields::Step TakeField(JsonScanner::Step step, size_t at);
  void EndObject();
  void BeginArguments();
  void FindArguments(size_t begin, std::string forced);
  void GoBehindCall();
  // What is held back is no call; its last byte may begin one.
  void GiveUp();
  // What is held back is JSON that is no call.
  void PassJson();
  void PassHeld();
  void PassOn();

  const Options options_;
  const Listener listener_;
  State state_ = State::kPrefix;
  std::string passed_;  // Not told yet.
  std::string held_;
  bool is_in_fence_ = false;  // The passed text is.
  size_t position_ = 0;

  // What is known of the call that is read, or was last read. Places are in held_.
  CallTags tags_;
  bool follows_call_ = false;  // kPrefix is behind a call.
  bool is_called_ = false;     // The call is found, and the rest of the object is skipped.
  JsonScanner scanner_;
  size_t name_begin_ = 0;  // Where the name of name[ARGS]{…} is.
  CallFields fields_;
  FormReader form_reader_;

  Found found_;
};

}  // namespace cria::server
