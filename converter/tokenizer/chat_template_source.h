#pragma once

#include <string>

namespace cria {

// A chat template, and what it is called in error sentences.
struct ChatTemplateSource {
  std::string text;       // Jinja; empty if there is no template.
  std::string where;      // The file that it is from, or the name of a built-in one.
  std::string note = {};  // What of several templates is not used; "": nothing.
};

}  // namespace cria
