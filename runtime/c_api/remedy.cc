#include "c_api/remedy.h"

#include <format>

#include "cria/cria.h"
#include "ops/kv_cache_view.h"

namespace cria::c_api {
namespace {

std::string FittingText(const Remedy& remedy) {
  std::string text;
  for (size_t i = 0; i < remedy.fitting_context_tokens.size(); ++i) {
    const uint32_t tokens = remedy.fitting_context_tokens[i];
    if (tokens == 0) continue;
    text += std::format("{} context_tokens {} with kv_type {}",
                        text.empty() ? "what would fit:" : " or", tokens,
                        KvTypeName(static_cast<KvType>(i)));
  }
  return text.empty() ? "no context would fit" : text;
}

const char* RemedyText(RemedyKind kind) {
  switch (kind) {
    case RemedyKind::kNone:
      return "";
    // These two are errors of the converter, which is no part of the library.
    case RemedyKind::kConvertVocabulary:
    case RemedyKind::kChatTemplate:
      return "convert it in another way";
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
    case RemedyKind::kCheckFile:
      return "cria info --check compares it with its checksums";
  }
  return "";
}

}  // namespace

std::string Sentence(const Error& error) {
  const Remedy& remedy = error.remedy();
  std::string sentence = error.message();
  if (remedy.kind == RemedyKind::kFitMemory) sentence += "; " + FittingText(remedy);
  if (remedy.kind != RemedyKind::kNone) (sentence += "; ") += RemedyText(remedy.kind);
  return sentence;
}

}  // namespace cria::c_api
