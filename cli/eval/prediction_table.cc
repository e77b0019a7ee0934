#include "cli/eval/prediction_table.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/format.h"
#include "core/output_file.h"
#include "core/utf8.h"

namespace cria::cli {
namespace {

std::string ValidText(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Character character = FirstUtf8Character(bytes);
    const bool is_valid = character.state == Utf8State::kValid;
    text += is_valid ? bytes.substr(0, character.size_bytes) : kReplacementCharacter;
    bytes.remove_prefix(character.size_bytes);
  }
  return text;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char each : text) quoted += each == '"' ? std::string("\"\"") : std::string(1, each);
  return quoted + '"';
}

std::string CsvTable(std::span<const TokenPrediction> predictions, bool has_base,
                     const Tokenizer& tokenizer) {
  std::string table = "position,token,text,nll";
  table += has_base ? ",base_nll,kl,same_top1,in_top5\r\n" : "\r\n";
  for (size_t i = 0; i < predictions.size(); ++i) {
    const TokenPrediction& each = predictions[i];
    table += Format("{},{},{},{}", i, each.token, Quoted(ValidText(tokenizer.Piece(each.token))),
                    each.negative_log_likelihood);
    if (has_base) {
      table += Format(",{},{},{},{}", each.base_negative_log_likelihood, each.divergence,
                      each.is_same_top1, each.is_in_top5);
    }
    table += "\r\n";
  }
  return table;
}

// Each object ends with `separator`, except for the last one.
std::string JsonObjects(std::span<const TokenPrediction> predictions, bool has_base,
                        const Tokenizer& tokenizer, std::string_view separator) {
  std::string objects;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const TokenPrediction& each = predictions[i];
    nlohmann::ordered_json object = {{"position", i},
                                     {"token", each.token},
                                     {"text", ValidText(tokenizer.Piece(each.token))},
                                     {"nll", each.negative_log_likelihood}};
    if (has_base) {
      object["base_nll"] = each.base_negative_log_likelihood;
      object["kl"] = each.divergence;
      object["same_top1"] = each.is_same_top1 != 0;
      object["in_top5"] = each.is_in_top5 != 0;
    }
    if (i > 0) objects += separator;
    objects += object.dump();
  }
  return objects;
}

}  // namespace

Status CheckTableName(const std::string& path) {
  if (path.ends_with(".csv") || path.ends_with(".jsonl") || path.ends_with(".json")) return {};
  return Fail(ErrorCode::kUsage, path + ": a table of tokens must end in .csv, .jsonl or .json");
}

Status WritePredictions(const std::string& path, std::span<const TokenPrediction> predictions,
                        bool has_base, const Tokenizer& tokenizer) {
  CRIA_RETURN_IF_ERROR(CheckTableName(path));
  std::string table;
  if (path.ends_with(".csv")) {
    table = CsvTable(predictions, has_base, tokenizer);
  } else if (path.ends_with(".jsonl")) {
    table = JsonObjects(predictions, has_base, tokenizer, "\n") + "\n";
  } else {
    table = "[\n" + JsonObjects(predictions, has_base, tokenizer, ",\n") + "\n]\n";
  }
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, table.size()));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(table))));
  return file.Commit();
}

}  // namespace cria::cli
