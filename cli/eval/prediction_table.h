#pragma once

#include <span>
#include <string>

#include "cli/eval/token_prediction.h"
#include "cria/error.h"
#include "text/tokenizer.h"

namespace cria::cli {

// Whether `path` names a kind of table that WritePredictions writes.
Status CheckTableName(const std::string& path);

// Writes one row for each predicted token: as CSV (RFC 4180) if the name ends in .csv, as a JSON
// object in each line if it ends in .jsonl, as one JSON list if it ends in .json. Bytes of tokens
// that are not UTF-8 become U+FFFD.
Status WritePredictions(const std::string& path, std::span<const TokenPrediction> predictions,
                        bool has_base, const Tokenizer& tokenizer);

}  // namespace cria::cli
