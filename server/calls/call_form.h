#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cria::server {

// How the arguments of a call are written.
enum class ArgumentStyle : uint8_t {
  kJson,    // A JSON object.
  kTagged,  // Each parameter between marks: texts as they are, other values as JSON.
  kBraces,  // {name:value,…}, with texts between <|"|>.
  kPython,  // name=value, …, as in Python.
};

// How calls of tools are written, other than by the forms that CallPrefix knows. An answer with
// calls is
//
//   section_open call_open NAME name_end ARGUMENTS call_close separator call_open … section_close
//
// A model that must call is made to write the white space of these texts; when calls are read,
// there may be more or less of it. In the place of a '#' stands the number of the call, or another
// id of it.
struct CallForm {
  std::string_view id;  // For tests and notices.
  ArgumentStyle style = ArgumentStyle::kJson;
  // The opening is certain to begin a call: the model must go on with the name of a tool. Other
  // openings may be mentioned in a text.
  bool is_certain = true;
  std::string_view section_open = {};
  std::string_view call_open = {};
  std::string_view name_end = {};
  std::string_view call_close = {};
  std::string_view separator = {};
  std::string_view section_close = {};
  // A parameter of kTagged is param_open NAME param_name_end VALUE param_close. If param_name_end
  // ends with a line end, one stands around the value, and is no part of it.
  std::string_view param_open = {};
  std::string_view param_name_end = {};
  std::string_view param_close = {};
  // Calls are among the messages of Harmony, whose headers harmony.h reads.
  bool has_channels = false;
  bool has_cdata = false;  // A text may stand between <![CDATA[ and ]]>.

  // Whether arguments stand in braces, and end with these and not with call_close.
  bool has_braces() const {
    return style == ArgumentStyle::kJson || style == ArgumentStyle::kBraces;
  }
  // What the first call begins with.
  std::string_view first_opening() const { return section_open.empty() ? call_open : section_open; }
  // What is written before the name of the first call.
  std::string Opening() const;
};

// Every form. A new one is a row in call_form.cc.
std::span<const CallForm> CallForms();

// ---- To read them ----

enum class Match : uint8_t { kNo, kPerhaps, kYes };

// Whether the text begins with `literal`; white space in either does not count. kPerhaps: the text
// ends before the literal does. After kYes, `text` is what follows the literal.
Match TakeLiteral(std::string_view literal, std::string_view& text);

std::string_view TrimSpace(std::string_view text);

// The text with digits for each '#'.
std::string WithNumber(std::string_view text, size_t number);

}  // namespace cria::server
