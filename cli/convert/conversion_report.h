#pragma once

#include <string>
#include <vector>

#include "converter/convert.h"

namespace cria::cli {

// A line for each.
void PrintNotes(const std::vector<std::string>& notes);

// What a conversion to the file `output` did, as tables and sentences.
void PrintReport(const ConvertReport& report, const std::string& output);

}  // namespace cria::cli
