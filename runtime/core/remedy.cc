#include "core/remedy.h"

namespace cria {
namespace {

std::string FittingText(const Remedy& remedy, const RemedyWords& words) {
  std::string text;
  for (size_t i = 0; i < remedy.fitting_context_tokens.size(); ++i) {
    const uint32_t tokens = remedy.fitting_context_tokens[i];
    if (tokens == 0) continue;
    text += text.empty() ? "what would fit: " : " or ";
    text += words.fitting(tokens, i);
  }
  return text.empty() ? "no context would fit" : text;
}

}  // namespace

std::string SentenceWithRemedy(const Error& error, const RemedyWords& words) {
  const Remedy& remedy = error.remedy();
  std::string sentence = error.message();
  if (remedy.kind == RemedyKind::kFitMemory) sentence += "; " + FittingText(remedy, words);
  if (remedy.kind == RemedyKind::kNone) return sentence;
  sentence += "; ";
  return sentence += remedy.kind == RemedyKind::kConvertCheckpoint
                         ? words.convert(remedy.checkpoint)
                         : words.remedy(remedy.kind);
}

}  // namespace cria
