#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/flags/options.h"
#include "cli/printable.h"
#include "cli/text_file.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

namespace cria::cli {
namespace {

struct TokenizeOptions {
  std::string model_path;
  std::string text;
  std::string text_path;
  bool no_bos = false;
  bool ids_only = false;
};

Status Tokenize(const TokenizeOptions& options) {
  std::string text = options.text;
  if (!options.text_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(text, ReadTextFile(options.text_path));
  }
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::OpenVocabulary(options.model_path));
  CRIA_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(file.vocabulary()));
  EncodeOptions encoding = {.parse_special = true};
  if (options.no_bos) encoding.add_bos = false;
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode(text, encoding));
  for (const int32_t id : tokens) {
    if (options.ids_only) {
      std::printf("%d\n", id);
    } else {
      std::printf("%6d '%s'\n", id, Printable(tokenizer.Piece(id)).c_str());
    }
  }
  return {};
}

}  // namespace

void AddTokenizeCommand(CommandLine& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CommandLine& command = program.AddCommand("tokenize", "Show the tokens of a text");
  AddModelOption(command, options->model_path);
  Option& text = command.AddText("-p,--prompt", options->text, "The text");
  command.AddText("-f,--file", options->text_path, "A file with the text")
      .Excludes(text)
      .Metavar("FILE");
  command.AddFlag("--no-bos", options->no_bos, "Do not begin with the BOS token");
  command.AddFlag("--ids", options->ids_only, "Print only the ids");
  command.SetAction([options] { return Tokenize(*options); });
}

}  // namespace cria::cli
