#include "cli/flags/generation_options.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "cli/flags/escapes.h"
#include "core/format.h"
#include "llm/random_seed.h"

namespace cria::cli {
namespace {

constexpr const char* kSamplingGroup = "Sampling";

// Reads a number at the beginning of `text` and removes it there.
template <typename Number>
std::optional<Number> TakeNumber(std::string_view& text) {
  Number number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc()) return std::nullopt;
  text = {stop, end};
  return number;
}

// "TOKEN_ID+BIAS" or "TOKEN_ID-BIAS".
Status ReadLogitBias(std::string_view text, std::vector<LogitBias>& biases) {
  std::string_view rest = text;
  const std::optional<int32_t> id = TakeNumber<int32_t>(rest);
  const bool has_sign = rest.starts_with('+') || rest.starts_with('-');
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const std::optional<float> addend = TakeNumber<float>(rest);
  if (!id || *id < 0 || !has_sign || !addend || !rest.empty()) {
    return WrongValue(text, "a token id and a bias, such as 15043+1.5 or 15043-inf");
  }
  biases.push_back({*id, *addend});
  return {};
}

// -1 is the whole context.
Setter LastNSetter(size_t& value) {
  return [&value](std::string_view text) -> Status {
    std::string_view rest = text;
    const std::optional<int64_t> number = TakeNumber<int64_t>(rest);
    if (!number || !rest.empty() || *number < -1 ||
        std::cmp_greater(*number, SamplerOptions::kWholeContext)) {
      return WrongValue(text, "a whole number of -1 or more");
    }
    value = *number < 0 ? SamplerOptions::kWholeContext : static_cast<size_t>(*number);
    return {};
  };
}

// What llama.cpp's option of the same name does: the first text takes the place of the defaults.
Setter BreakerSetter(DryOptions& options) {
  return [&options](std::string_view text) -> Status {
    if (!options.sequence_breakers || text == "none") options.sequence_breakers.emplace();
    if (text == "none") return {};
    options.sequence_breakers->push_back(ReadEscapes(std::string(text)));
    return {};
  };
}

void AddPenaltyOptions(CommandLine& command, SamplerOptions& options) {
  const auto add = [&](const char* flags, float& value, float min, float max, const char* help) {
    command.AddNumber(flags, value, help, min, max).Group(kSamplingGroup);
  };
  const auto add_last_n = [&](const char* flags, size_t& value, const char* help) {
    command.Add(flags, "INT", LastNSetter(value), help)
        .Default(LastNText(value))
        .Group(kSamplingGroup);
  };
  add("--repeat-penalty", options.repeat_penalty, 0.01f, 10.0f,
      "Make recent tokens less likely; 1: off");
  add("--presence-penalty", options.presence_penalty, -100.0f, 100.0f,
      "Subtract this from the logits of recent tokens; 0: off");
  add("--frequency-penalty", options.frequency_penalty, -100.0f, 100.0f,
      "Subtract this for each time that a token is recent; 0: off");
  add_last_n("--repeat-last-n", options.repeat_last_n,
             "How many tokens count as recent; -1: all of the context");
  add("--dry-multiplier", options.dry.multiplier, 0.0f, 100.0f,
      "DRY: make tokens that go on with a repetition less likely; 0: off");
  add("--dry-base", options.dry.base, 1.0f, 100.0f,
      "DRY: the factor for each token of a repetition");
  command
      .AddNumber("--dry-allowed-length", options.dry.allowed_length,
                 "DRY: repetitions of fewer tokens are allowed")
      .Group(kSamplingGroup);
  add_last_n("--dry-penalty-last-n", options.dry.last_n,
             "DRY: how many tokens are searched for repetitions; -1: all of the context");
  command
      .Add("--dry-sequence-breaker", "TEXT", BreakerSetter(options.dry),
           "DRY: no repetition contains this text; none: there are no such texts; may be repeated")
      .Default("\\n, :, \" and *")
      .Repeatable()
      .Group(kSamplingGroup);
}

}  // namespace

std::string LastNText(size_t value) {
  return value == SamplerOptions::kWholeContext ? "-1" : Format("{}", value);
}

void AddPredictOption(CommandLine& command, size_t& max_tokens, const std::string& help) {
  const auto set = [&max_tokens](std::string_view text) -> Status {
    std::string_view rest = text;
    const std::optional<int64_t> number = TakeNumber<int64_t>(rest);
    if (!number || !rest.empty() || *number < -1 ||
        std::cmp_greater(*number, std::numeric_limits<size_t>::max())) {
      return WrongValue(text, "a whole number of -1 or more");
    }
    max_tokens = *number < 0 ? 0 : static_cast<size_t>(*number);
    return {};
  };
  command.Add("-n,--predict", "INT", set, help + "; -1 or 0: no limit").Default("-1");
}

void AddSamplerOptions(CommandLine& command, SamplerOptions& options) {
  const char* group = kSamplingGroup;
  const auto add = [&](const char* flags, auto& value, const char* help) {
    command.AddNumber(flags, value, help).Group(group);
  };
  const auto add_in = [&](const char* flags, float& value, float min, float max, const char* help) {
    command.AddNumber(flags, value, help, min, max).Group(group);
  };
  add_in("--temp", options.temperature, 0.0f, 10.0f,
         "Temperature; 0 always takes the most likely token");
  add("--top-k", options.top_k, "Choose among the k most likely tokens; 0: all");
  add_in("--typical", options.typical_p, 0.0f, 1.0f,
         "Choose among the tokens with the most typical information whose probabilities reach p "
         "together; 1: all");
  add_in("--top-p", options.top_p, 0.0f, 1.0f,
         "Choose among the most likely tokens whose probabilities reach p together; 1: all");
  add_in("--min-p", options.min_p, 0.0f, 1.0f,
         "Drop tokens less than p times as likely as the most likely; 0: none");
  add_in("--xtc-probability", options.xtc_probability, 0.0f, 1.0f,
         "XTC: how often all but the last of the top tokens are excluded; 0: never");
  add_in("--xtc-threshold", options.xtc_threshold, 0.0f, 1.0f,
         "XTC: how likely a top token is; above 0.5: none");
  AddPenaltyOptions(command, options);
  command
      .Add(
          "--logit-bias", "BIAS",
          [&options](std::string_view text) { return ReadLogitBias(text, options.logit_bias); },
          "Change the logit of a token, such as 15043+1.5, or forbid it: 15043-inf; may be "
          "repeated")
      .Repeatable()
      .Group(group);
  options.seed = RandomSeed();
  const auto set_seed = [&options](std::string_view text) -> Status {
    if (text == "-1") {
      options.seed = RandomSeed();
      return {};
    }
    std::string_view rest = text;
    const std::optional<uint64_t> seed = TakeNumber<uint64_t>(rest);
    if (!seed || !rest.empty()) return WrongValue(text, "a whole number of -1 or more");
    options.seed = *seed;
    return {};
  };
  command
      .Add("-s,--seed", "INT", set_seed,
           "Seed of the random numbers; the same seed gives the same text; -1: a random seed")
      .Default("-1")
      .Group(group);
}

std::string TextOptions::Read(const std::string& text) const {
  return has_escapes ? ReadEscapes(text) : text;
}

Result<StopStrings> TextOptions::MakeStopStrings() const {
  std::vector<std::string> read;
  read.reserve(stop_strings.size());
  for (const std::string& text : stop_strings) read.push_back(Read(text));
  return StopStrings::Create(std::move(read));
}

void AddTextOptions(CommandLine& command, TextOptions& options, const std::string& escaped) {
  command
      .Add(
          "--stop", "TEXT",
          [&options](std::string_view text) -> Status {
            options.stop_strings.emplace_back(text);
            return {};
          },
          "End before this text; may be repeated")
      .Repeatable();
  command.AddFlag("-e,--escape", options.has_escapes,
                  "Read \\n, \\t, \\r, \\\\, \\\", \\' and \\xHH in " + escaped + " and --stop");
}

}  // namespace cria::cli
