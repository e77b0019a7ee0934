#include "c_api/generation.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "c_api/texts.h"
#include "c_api/versioned_struct.h"
#include "core/format.h"

namespace cria::c_api {

template <>
inline constexpr size_t kFirstVersionBytes<cria_generation_options> =
    offsetof(cria_generation_options, parse_special) + sizeof(int32_t);

namespace {

static_assert(sizeof(cria_generation_options) ==
              offsetof(cria_generation_options, num_dry_sequence_breakers) + sizeof(size_t));
// The second version's fields directly follow those of the first.
static_assert(kFirstVersionBytes<cria_generation_options> ==
              offsetof(cria_generation_options, stop_strings));
// And so do those of the third and the fourth.
static_assert(offsetof(cria_generation_options, constraint_kind) ==
              offsetof(cria_generation_options, num_logit_bias) + sizeof(size_t));
static_assert(offsetof(cria_generation_options, presence_penalty) ==
              offsetof(cria_generation_options, constraint_bytes) + sizeof(size_t));

Result<WhenFull> ToWhenFull(int32_t when_full) {
  if (when_full == CRIA_WHEN_FULL_STOP) return WhenFull::kStop;
  if (when_full == CRIA_WHEN_FULL_SHIFT) return WhenFull::kShift;
  return Fail(ErrorCode::kUsage,
              Format("when_full is {}, which is not one of CRIA_WHEN_FULL_...", when_full));
}

// In errors, the array is called `name` and one of its texts `item`.
Result<std::vector<std::string>> ReadTexts(const cria_text* texts, size_t count, const char* name,
                                           const char* item) {
  CRIA_ASSIGN_OR_RETURN(const std::span<const cria_text> given, ReadArray(texts, count, name));
  std::vector<std::string> read;
  read.reserve(given.size());
  for (const cria_text& text : given) {
    CRIA_ASSIGN_OR_RETURN(const std::string_view one, ReadText(text.text, text.text_bytes, item));
    read.emplace_back(one);
  }
  return read;
}

Result<StopStrings> ReadStopStrings(const cria_generation_options& options) {
  CRIA_ASSIGN_OR_RETURN(
      std::vector<std::string> strings,
      ReadTexts(options.stop_strings, options.num_stop_strings, "stop_strings", "a stop string"));
  return StopStrings::Create(std::move(strings));
}

// A field that is 0 has its default.
Result<DryOptions> ReadDry(const cria_generation_options& options) {
  DryOptions dry = {.multiplier = options.dry_multiplier};
  if (options.dry_base != 0.0f) dry.base = options.dry_base;
  if (options.dry_allowed_length != 0) dry.allowed_length = options.dry_allowed_length;
  if (options.dry_penalty_last_n != 0) dry.last_n = options.dry_penalty_last_n;
  CRIA_ASSIGN_OR_RETURN(std::vector<std::string> breakers,
                        ReadTexts(options.dry_sequence_breakers, options.num_dry_sequence_breakers,
                                  "dry_sequence_breakers", "a text of dry_sequence_breakers"));
  const bool has_none = options.dry_no_sequence_breakers != 0;
  if (has_none && !breakers.empty()) {
    return Fail(ErrorCode::kUsage,
                "dry_sequence_breakers has texts, but dry_no_sequence_breakers is not 0");
  }
  if (has_none || !breakers.empty()) dry.sequence_breakers = std::move(breakers);
  return dry;
}

Status ReadConstraint(const cria_generation_options& options, Generation& generation) {
  if (options.reserved != 0) {
    return Fail(ErrorCode::kUnsupported,
                "reserved of cria_generation_options is not 0; use CRIA_GENERATION_OPTIONS_INIT");
  }
  CRIA_ASSIGN_OR_RETURN(const std::string_view text,
                        ReadText(options.constraint, options.constraint_bytes, "constraint"));
  generation.constraint_text = text;
  generation.is_constrained = true;
  bool has_text = true;
  switch (options.constraint_kind) {
    case CRIA_CONSTRAINT_NONE:
      generation.is_constrained = has_text = false;
      break;
    case CRIA_CONSTRAINT_JSON_SCHEMA:
      generation.constraint_kind = grammar::ConstraintKind::kJsonSchema;
      break;
    case CRIA_CONSTRAINT_JSON:
      generation.constraint_kind = grammar::ConstraintKind::kJson;
      has_text = false;
      break;
    case CRIA_CONSTRAINT_JSON_OBJECT:
      generation.constraint_kind = grammar::ConstraintKind::kJsonObject;
      has_text = false;
      break;
    case CRIA_CONSTRAINT_GRAMMAR:
      generation.constraint_kind = grammar::ConstraintKind::kGbnf;
      break;
    case CRIA_CONSTRAINT_REGEX:
      generation.constraint_kind = grammar::ConstraintKind::kRegex;
      break;
    default:
      return Fail(ErrorCode::kUsage,
                  Format("constraint_kind is {}, which is not one of CRIA_CONSTRAINT_...",
                         options.constraint_kind));
  }
  if (has_text || text.empty()) return {};
  return Fail(ErrorCode::kUsage, Format("constraint has a text, but constraint_kind {} takes none",
                                        options.constraint_kind));
}

Result<Sampler> MakeSampler(const LoadedModel& model, const cria_generation_options& options) {
  CRIA_ASSIGN_OR_RETURN(const std::span<const cria_logit_bias> given,
                        ReadArray(options.logit_bias, options.num_logit_bias, "logit_bias"));
  std::vector<LogitBias> logit_bias;
  logit_bias.reserve(given.size());
  for (const cria_logit_bias& bias : given) logit_bias.push_back({bias.token, bias.addend});
  SamplerOptions sampler = {.logit_bias = std::move(logit_bias),
                            .repeat_penalty = options.repeat_penalty,
                            .presence_penalty = options.presence_penalty,
                            .frequency_penalty = options.frequency_penalty,
                            .repeat_last_n = options.repeat_last_n,
                            .top_k = options.top_k,
                            .top_p = options.top_p,
                            .min_p = options.min_p,
                            .xtc_probability = options.xtc_probability,
                            .temperature = options.temperature,
                            .seed = options.seed};
  CRIA_ASSIGN_OR_RETURN(sampler.dry, ReadDry(options));
  if (options.typical_p != 0.0f) sampler.typical_p = options.typical_p;
  if (options.xtc_threshold != 0.0f) sampler.xtc_threshold = options.xtc_threshold;
  return model.engine->NewSampler(sampler);
}

}  // namespace

Result<Generation> MakeGeneration(const LoadedModel& model, const cria_generation_options* given) {
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options options,
                        ReadStruct(given, cria_generation_options CRIA_GENERATION_OPTIONS_INIT,
                                   "cria_generation_options"));
  CRIA_ASSIGN_OR_RETURN(const WhenFull when_full, ToWhenFull(options.when_full));
  CRIA_ASSIGN_OR_RETURN(StopStrings stop_strings, ReadStopStrings(options));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, MakeSampler(model, options));
  Generation generation = {.sampler = std::move(sampler),
                           .stop_strings = std::move(stop_strings),
                           .max_tokens = options.max_tokens,
                           .keep_tokens = options.keep_tokens,
                           .when_full = when_full,
                           .parse_special = options.parse_special != 0};
  CRIA_RETURN_IF_ERROR(ReadConstraint(options, generation));
  return generation;
}

Result<ConstraintUse> ConstraintUse::Begin(LoadedModel& model, const Generation& generation) {
  ConstraintUse use;
  if (!generation.is_constrained) return use;
  CRIA_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint, model.TakeConstraint());
  use.constraint_ = {constraint.release(), Returning{&model}};
  CRIA_RETURN_IF_ERROR(
      use.constraint_->Set({generation.constraint_kind, generation.constraint_text}));
  return use;
}

void ConstraintUse::Returning::operator()(Constraint* constraint) const {
  model->ReturnConstraint(std::unique_ptr<Constraint>(constraint));
}

Result<std::unique_ptr<Constraint>> LoadedModel::TakeConstraint() {
  {
    const std::lock_guard lock(constraint_mutex_);
    if (!free_constraints_.empty()) {
      // The last one that was used may have the same text, about which it knows much.
      std::unique_ptr<Constraint> constraint = std::move(free_constraints_.back());
      free_constraints_.pop_back();
      return constraint;
    }
  }
  CRIA_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint, engine->NewConstraint());
  const std::lock_guard lock(constraint_mutex_);
  // So that giving one back allocates nothing.
  free_constraints_.reserve(++num_constraints_);
  return constraint;
}

void LoadedModel::ReturnConstraint(std::unique_ptr<Constraint> constraint) {
  const std::lock_guard lock(constraint_mutex_);
  free_constraints_.push_back(std::move(constraint));
}

}  // namespace cria::c_api
