#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/answers/answer_setup.h"

namespace cria::server {

// What an answer must have, behind its reasoning.
enum class AnswerNeed : uint8_t { kNothing, kShape, kCall };

// What an answer must be, as far as it can be enforced, and the constraint that enforces it.
class AnswerForm {
 public:
  // Throws RequestError if less can be enforced than the request wants. `setup` must outlive it.
  explicit AnswerForm(const AnswerSetup& setup);

  AnswerNeed need() const { return need_; }
  // The tools that may be called, with schemas that can be enforced; null: there are none.
  const ToolUse* tools() const { return tools_ ? &*tools_ : nullptr; }
  bool has_constraint() const { return setup_.constraint != nullptr; }

  // One of them.
  const Tool& ToolOf(std::string_view name) const;

  // Sets what the text must match that is generated next. Throws RequestError.
  void Constrain(const AnswerShape& shape);
  // Sets that the arguments of the tool must come next, in a form; null: as JSON. kBegin: what
  // follows them is not constrained.
  enum class Extent : uint8_t { kBegin, kWhole };
  void ConstrainArguments(const Tool& tool, const CallForm* form, Extent extent);
  // Whether the text may stand where the constraint is, which then is behind it.
  bool Accepts(std::string_view text);
  // Whether the arguments match the tool's schema.
  bool Fits(const ToolCall& call);

 private:
  void ChooseTools();
  void LoosenTools();
  void CheckShape();
  Status Set(const AnswerShape& shape);
  Status SetArguments(const Tool& tool, const CallForm* form, Extent extent);
  // Whether the arguments of calls of the tool can be enforced. Sets the constraint.
  Status CheckTool(const Tool& tool);

  const AnswerSetup& setup_;
  std::optional<ToolUse> tools_;
  AnswerNeed need_ = AnswerNeed::kNothing;
};

}  // namespace cria::server
