#include "cli/remedy.h"

#include "cli/model_name.h"
#include "cli/terminal/shell_word.h"
#include "core/format.h"
#include "core/remedy.h"
#include "ops/kv_cache_view.h"

namespace cria::cli {
namespace {

std::string FittingText(uint32_t tokens, size_t kv_type) {
  return Format("-c {} --kv {}", tokens, KvTypeName(static_cast<KvType>(kv_type)));
}

const char* RemedyText(RemedyKind kind) {
  switch (kind) {
    case RemedyKind::kNone:
    case RemedyKind::kConvertCheckpoint:  // ConvertText has the words.
      return "";
    case RemedyKind::kChooseContext:
      return "choose another with -c";
    case RemedyKind::kLargerContext:
      return "shorten it or ask for a larger context with -c";
    case RemedyKind::kLessContext:
      return "choose a smaller context with -c or a smaller KV type with --kv";
    case RemedyKind::kKeepLess:
      return "keep fewer with --keep, or ask for a larger context with -c";
    case RemedyKind::kChooseThreads:
      return "choose another number with -t";
    case RemedyKind::kFewerThreads:
      return "ask for fewer with -t";
    case RemedyKind::kFitMemory:
      return "--force runs it anyway";
    case RemedyKind::kConvert:
      return "make one with a matching cria-convert";
    case RemedyKind::kCopyOrConvert:
      return "copy or convert it again";
    case RemedyKind::kConvertVocabulary:
      return "--vocab-only converts the vocabulary of a file without weights";
    case RemedyKind::kChatTemplate:
      return "convert with another template, or without one (--chat-template)";
    case RemedyKind::kPack:
      return "pack the model with cria pack";
    case RemedyKind::kPackStandalone:
      return "run the model file that it was made from, or pack that file here with cria pack "
             "--standalone";
    case RemedyKind::kCheckFile:
      return "see cria info --check";
    case RemedyKind::kOverwrite:
      return "choose another name, or replace it with --overwrite";
    case RemedyKind::kMoreConstraints:  // A command loads the model for as many as it makes.
      return "";
    case RemedyKind::kDownloadFolder:
      return "make room, or choose a folder on another disk with --download-cache";
  }
  return "";
}

// The whole command, to be copied.
std::string ConvertText(const std::string& checkpoint) {
  return Format("convert it with: cria-convert {} -o {}", ShellWord(checkpoint),
                ShellWord(ModelNameFor(checkpoint)));
}

}  // namespace

std::string Sentence(const Error& error) {
  return SentenceWithRemedy(error,
                            {.remedy = RemedyText, .fitting = FittingText, .convert = ConvertText});
}

}  // namespace cria::cli
