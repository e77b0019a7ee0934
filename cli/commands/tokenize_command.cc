#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/escapes.h"
#include "cli/flags/options.h"
#include "cli/input/left_out.h"
#include "cli/input/prompt_source.h"
#include "cli/report.h"
#include "cli/terminal/printable.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

namespace cria::cli {
namespace {

struct TokenizeOptions {
  std::string model_path;
  PromptSource prompt;
  bool has_escapes = false;
  bool no_bos = false;
  bool ids_only = false;
  bool json = false;
};

void PrintTokens(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens, bool ids_only) {
  for (const int32_t id : tokens) {
    if (ids_only) {
      std::printf("%d\n", id);
    } else {
      std::printf("%6d '%s'\n", id, Printable(tokenizer.Piece(id)).c_str());
    }
  }
}

void PrintTokensAsJson(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                       bool ids_only) {
  nlohmann::ordered_json object = {{"count", tokens.size()}, {"ids", tokens}};
  if (!ids_only) {
    auto& pieces = object["pieces"] = nlohmann::ordered_json::array();
    for (const int32_t id : tokens) pieces.push_back(tokenizer.Piece(id));
  }
  PrintJson(object);
}

Status Tokenize(const TokenizeOptions& options) {
  CRIA_ASSIGN_OR_RETURN(std::optional<std::string> text, ReadPrompt(options.prompt, LongText()));
  if (!text) return Fail(ErrorCode::kUsage, "there is no text: give it with -p, -f or a pipe");
  if (options.has_escapes && options.prompt.text) text = ReadEscapes(*text);
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::OpenVocabulary(options.model_path));
  CRIA_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(file.vocabulary()));
  EncodeOptions encoding = {.parse_special = true};
  if (options.no_bos) encoding.add_bos = false;
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode(*text, encoding));
  if (const std::string notice = LeftOutNotice(tokenizer, *text); !notice.empty()) {
    std::fprintf(stderr, "cria: %s\n", notice.c_str());
  }
  (options.json ? PrintTokensAsJson : PrintTokens)(tokenizer, tokens, options.ids_only);
  return {};
}

}  // namespace

void AddTokenizeCommand(CommandLine& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CommandLine& command = program.AddCommand("tokenize", "Show the tokens of a text");
  AddModelOption(command, options->model_path);
  AddPromptOptions(command, options->prompt, "The text", "A file with the text");
  command.AddFlag("-e,--escape", options->has_escapes,
                  "Read \\n, \\t, \\r, \\\\, \\\", \\' and \\xHH in -p");
  command.AddFlag("--no-bos", options->no_bos, "Do not begin with the BOS token");
  command.AddFlag("--ids", options->ids_only, "Print only the ids");
  command.AddFlag("--json", options->json, "Print a JSON object");
  command.SetAction([options] { return Tokenize(*options); });
}

}  // namespace cria::cli
