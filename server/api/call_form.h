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
// White space in these texts is what the model is made to write; when calls are read, there may be
// more or less of it. A '#' is a number, or another id, of the call.
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

  // What is written before the name of the first call.
  std::string Opening() const;
};

// Every form. A new one is a row in call_form.cc.
std::span<const CallForm> CallForms();

// ---- To read them ----

enum class Match : uint8_t { kNo, kPerhaps, kYes };

// Compares `literal` with the beginning of the text, white space in either aside. kPerhaps: the
// text ends before the literal does. If kYes, `text` becomes the rest.
Match TakeLiteral(std::string_view literal, std::string_view& text);

std::string_view TrimSpace(std::string_view text);

// The text with digits for each '#'.
std::string WithNumber(std::string_view text, size_t number);

}  // namespace cria::server
