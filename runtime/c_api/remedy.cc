#include "c_api/remedy.h"

#include "core/format.h"
#include "core/remedy.h"
#include "ops/kv_cache_view.h"

namespace cria::c_api {
namespace {

std::string FittingText(uint32_t tokens, size_t kv_type) {
  return Format("context_tokens {} with kv_type {}", tokens,
                KvTypeName(static_cast<KvType>(kv_type)));
}

const char* RemedyText(RemedyKind kind) {
  switch (kind) {
    case RemedyKind::kNone:
    case RemedyKind::kConvertCheckpoint:  // ConvertText has the words.
      return "";
    // Only the converter, which is not part of the library, reports these.
    case RemedyKind::kDownloadFolder:
    case RemedyKind::kConvertVocabulary:
    case RemedyKind::kChatTemplate:
      return "convert it in another way";
    case RemedyKind::kOverwrite:  // Only the programs ask whether a file may be replaced.
      return "choose another name";
    case RemedyKind::kChooseContext:
      return "choose another context_tokens";
    case RemedyKind::kLargerContext:
      return "shorten it or load the model with more context_tokens";
    case RemedyKind::kLessContext:
      return "choose fewer context_tokens or a smaller kv_type";
    case RemedyKind::kKeepLess:
      return "choose a smaller keep_tokens, or load the model with more context_tokens";
    case RemedyKind::kChooseThreads:
      return "choose another num_threads";
    case RemedyKind::kFewerThreads:
      return "choose a smaller num_threads";
    case RemedyKind::kFitMemory:
      return "ignore_memory_limits loads it all the same";
    case RemedyKind::kConvert:
      return "make one with a matching cria-convert";
    case RemedyKind::kCopyOrConvert:
      return "copy or convert it again";
    case RemedyKind::kPack:
      return "load the model with CRIA_PACK_ON_FIRST_USE, or pack it with cria pack";
    case RemedyKind::kPackStandalone:
      return "load the model file that it was made of, or have cria pack --standalone make another "
             "for this processor";
    case RemedyKind::kMoreConstraints:
      return "load it with a larger max_constraints";
    case RemedyKind::kCheckFile:
      return "cria info --check compares it with its checksums";
  }
  return "";
}

std::string ConvertText(const std::string& checkpoint) {
  return Format("convert {} with cria-convert", checkpoint);
}

}  // namespace

std::string Sentence(const Error& error) {
  return SentenceWithRemedy(error,
                            {.remedy = RemedyText, .fitting = FittingText, .convert = ConvertText});
}

}  // namespace cria::c_api
