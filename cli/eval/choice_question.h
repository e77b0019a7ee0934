#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

struct ChoiceQuestion {
  std::string context;
  std::vector<std::string> choices;
  size_t label = 0;  // The index of the right choice.
};

// Reads one JSON object from each line that is not blank: {"context": "…", "choices": ["…", …],
// "label": 0}. Other fields are ignored. `where` names the file in errors, which name the line,
// too.
Result<std::vector<ChoiceQuestion>> ReadChoiceQuestions(std::string_view lines,
                                                        const std::string& where);

}  // namespace cria::cli
