#include "server/answers/answer_text.h"

#include <algorithm>
#include <functional>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, std::not_fn(IsContinuation)));
}

Sampler SamplerOf(const AnswerSetup& setup) {
  SamplerOptions options = setup.options.sampler;
  options.seed = setup.seed;
  return ValueOf(Sampler::Create(options, setup.session.vocab_size(), &setup.tokenizer,
                                 setup.session.context_tokens()),
                 options.dry.is_on() ? "dry_sequence_breakers" : "logit_bias");
}

}  // namespace

AnswerText::AnswerText(const AnswerSetup& setup, AnswerListener& listener)
    : setup_(setup),
      listener_(listener),
      shows_control_(setup.has_channels || (setup.tools != nullptr && setup.tools->may_call())),
      sampler_(SamplerOf(setup)) {
  if (!setup.options.stop.empty()) {
    stop_strings_.emplace(ValueOf(StopStrings::Create(setup.options.stop), "stop"));
  }
  log_probabilities_.set_count(setup.options.top_log_probabilities);
  FindMarkers();
}

// Some vocabularies have control tokens around reasoning, of which the detokenizer makes no text.
void AnswerText::FindMarkers() {
  const Vocabulary& vocabulary = setup_.tokenizer.vocabulary();
  for (const std::string_view text : {setup_.tags.open, setup_.tags.close}) {
    if (text.empty()) continue;
    const auto ids =
        ValueOf(setup_.tokenizer.Encode(text, {.add_bos = false, .parse_special = true}));
    if (ids.size() == 1 &&
        vocabulary.piece_types[static_cast<size_t>(ids[0])] == PieceType::kControl) {
      markers_.emplace_back(ids[0], text);
    }
  }
}

std::optional<StopReason> AnswerText::Begin(Turn& turn) {
  turn_ = &turn;
  const std::optional<StopReason> ended = Read(setup_.prompt);
  text_.Begin(setup_.session.tokens().size());
  return ended;
}

std::optional<StopReason> AnswerText::Read(std::span<const int32_t> tokens) {
  const Status read =
      turn_->Prefill(tokens, [this](size_t, size_t) { return listener_.goes_on(); });
  if (!read && read.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
  ThrowIfError(read);
  return std::nullopt;
}

std::optional<StopReason> AnswerText::MoveTo(size_t at, const std::string& forced) {
  const std::span<const int32_t> context = setup_.session.tokens();
  // The last token of a full context is not part of it.
  const SectionText::Cut cut = text_.CutAt(at, context.size());
  const std::string rest = std::string(cut.rest) + forced;
  if (rest.empty() && cut.context_tokens == context.size()) return std::nullopt;
  const auto beginning = context.first(cut.context_tokens);
  std::vector<int32_t> tokens(beginning.begin(), beginning.end());
  const auto added =
      ValueOf(setup_.tokenizer.Encode(rest, {.add_bos = false, .parse_special = true}));
  tokens.insert(tokens.end(), added.begin(), added.end());
  num_tokens_ = num_tokens_ - cut.dropped_tokens + added.size();
  if (tokens.size() >= turn_->max_length()) return StopReason::kContextFull;
  return Read(tokens);
}

StopReason AnswerText::Generate(AnswerSection& section) {
  text_.Begin(setup_.session.tokens().size());
  section.Begin(0);
  return Run(section, "");
}

StopReason AnswerText::GenerateFrom(size_t at, AnswerSection& section) {
  const size_t skipped_bytes = text_.BeginAt(at);
  section.Begin(skipped_bytes);
  return Run(section, text_.text().substr(skipped_bytes));
}

StopReason AnswerText::Run(AnswerSection& section, std::string_view written) {
  const bool is_first = num_tokens_ == 0;
  section_ = &section;
  if (is_full()) return StopReason::kMaxTokens;
  detokenizer_.emplace(setup_.tokenizer,
                       DetokenizerOptions{.at_text_start = is_first && setup_.at_text_start});
  const bool has_stop_strings = stop_strings_ && section.may_have_stop_string();
  const TextCallback on_text = [&](std::string_view text) { Guard([&] { section.Take(text); }); };
  TextOutput output(*detokenizer_, has_stop_strings ? &*stop_strings_ : nullptr, on_text);
  const auto rethrow = [this] {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  };
  output.Write(written);
  rethrow();
  if (section.has_ended()) return StopReason::kStopToken;
  if (output.has_stop_string()) return StopReason::kStopString;
  const GenerationOptions options = OptionsOf(section);
  const auto on_token = [&](const GeneratedToken& token) {
    bool goes_on = false;
    Guard([&] {
      TakeToken(token, output);
      goes_on = !section.has_ended() && !output.has_stop_string() && listener_.goes_on();
    });
    return goes_on && !exception_;
  };
  const Result<StopReason> reason = cria::Generate(*turn_, options, sampler_, on_token);
  rethrow();
  if (!reason) {
    // Waiting would not help: a constraint has always the same memory.
    const bool is_too_large = section.is_constrained() &&
                              reason.error().code() == ErrorCode::kOutOfMemory &&
                              !setup_.constraint->FindNext(options.stop_token_ids, SIZE_MAX);
    if (!is_too_large) throw ErrorOf(reason.error());
    const bool is_call = section.kind() == SectionKind::kCall;
    throw RequestError(400, reason.error().message(),
                       is_call ? "tools" : setup_.options.shape.field);
  }
  if (section.next()) return *reason;
  text_.AddRest(output.End());
  rethrow();
  return output.has_stop_string() ? StopReason::kStopString : *reason;
}

GenerationOptions AnswerText::OptionsOf(const AnswerSection& section) {
  const AnswerOptions& answer = setup_.options;
  GenerationOptions options = {
      .max_tokens = answer.max_tokens == 0 ? 0 : answer.max_tokens - num_tokens_,
      .cancel = setup_.cancel,
      .log_probabilities = answer.log_probabilities};
  if (section.is_constrained()) options.constraint = setup_.constraint;
  if (!answer.ignore_eos || section.is_constrained()) {
    options.stop_token_ids = setup_.stop_token_ids;
  }
  if (log_probabilities_.count() > 0) {
    options.on_logits = [this](size_t position, std::span<const float> logits) {
      log_probabilities_.Add(position, logits);
    };
  }
  return options;
}

void AnswerText::TakeToken(const GeneratedToken& token, TextOutput& output) {
  ++num_tokens_;
  const bool is_in_character = detokenizer_->is_in_character();
  std::string_view text = output.TextOf(token.id);
  if (text.empty()) text = ControlText(token.id);
  text_.AddToken(text);
  if (setup_.options.log_probabilities) {
    section_->TakeToken(LogProbabilityOf(token, FirstCharacter(token.id, is_in_character)));
    num_characters_ += CountCharacters(text);
  }
  section_->CountToken();
  output.Write(text);
}

bool AnswerText::HasAllTokens() {
  return text_.end_tokens() == setup_.session.tokens().size() && detokenizer_->Flush().empty();
}

size_t AnswerText::FirstCharacter(int32_t id, bool is_in_character) const {
  const std::string_view piece = setup_.tokenizer.Piece(id);
  const bool continues = piece.empty() || IsContinuation(piece.front());
  // What was begun and does not go on became a character of its own.
  return num_characters_ + (is_in_character && !continues ? 1 : 0);
}

TokenLogProbability AnswerText::LogProbabilityOf(const GeneratedToken& token,
                                                 size_t first_character) {
  const auto most_likely = log_probabilities_.Take(setup_.session.tokens().size());
  TokenLogProbability told = {.text = setup_.tokenizer.Piece(token.id),
                              .first_character = first_character,
                              .log_probability = token.log_probability};
  told.most_likely.reserve(most_likely.size());
  for (const auto& [id, log_probability] : most_likely) {
    told.most_likely.emplace_back(setup_.tokenizer.Piece(id), log_probability);
  }
  return told;
}

std::string_view AnswerText::ControlText(int32_t id) const {
  const auto marker = std::ranges::find(markers_, id, [](const auto& pair) { return pair.first; });
  if (marker != markers_.end()) return marker->second;
  const Vocabulary& vocabulary = setup_.tokenizer.vocabulary();
  const auto index = static_cast<size_t>(id);
  const bool is_shown = shows_control_ && index < vocabulary.size() &&
                        vocabulary.piece_types[index] == PieceType::kControl &&
                        id != vocabulary.bos_token_id &&
                        !std::ranges::contains(setup_.stop_token_ids, id);
  return is_shown ? vocabulary.piece(index) : std::string_view();
}

template <typename Function>
void AnswerText::Guard(const Function& function) {
  if (exception_) return;
  try {
    function();
  } catch (...) {
    exception_ = std::current_exception();
  }
}

}  // namespace cria::server
