#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "c_api/handles.h"
#include "llm/completion.h"
#include "llm/constraint.h"
#include "llm/sampler.h"
#include "llm/stop_strings.h"

namespace cria::c_api {

// A caller's options for generating, with what is made from them.
struct Generation {
  Sampler sampler;
  StopStrings stop_strings;
  uint32_t max_tokens;
  uint32_t keep_tokens;
  WhenFull when_full;
  bool parse_special;
  bool is_constrained = false;
  grammar::ConstraintKind constraint_kind = {};
  std::string constraint_text;
};

// Null means the defaults. Keeps no pointer of the caller.
Result<Generation> MakeGeneration(const LoadedModel& model, const cria_generation_options* options);

// The constraint of one call, which goes back to the model at its end.
class ConstraintUse {
 public:
  // Without a constraint, there is none. Fails if the constraint is wrong, or if all constraints of
  // the model are in use.
  static Result<ConstraintUse> Begin(LoadedModel& model, const Generation& generation);
  ConstraintUse(ConstraintUse&&) noexcept = default;
  ConstraintUse& operator=(ConstraintUse&&) noexcept = default;

  Constraint* get() const { return constraint_.get(); }

 private:
  struct Returning {
    LoadedModel* model;
    void operator()(Constraint* constraint) const;
  };

  ConstraintUse() = default;

  std::unique_ptr<Constraint, Returning> constraint_;
};

}  // namespace cria::c_api
