#include "server/answers/answer_form.h"

#include <algorithm>

#include "server/calls/argument_grammar.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

AnswerShape ArgumentsShape(const Tool& tool) {
  return {AnswerShape::Kind::kJsonSchema, tool.parameters, "tools"};
}

}  // namespace

AnswerForm::AnswerForm(const AnswerSetup& setup) : setup_(setup) {
  ChooseTools();
  CheckShape();
}

void AnswerForm::Constrain(const AnswerShape& shape) { ThrowIfError(Set(shape), shape.field); }

void AnswerForm::ConstrainArguments(const Tool& tool, const CallForm* form, Extent extent) {
  ThrowIfError(SetArguments(tool, form, extent), "tools");
}

Status AnswerForm::SetArguments(const Tool& tool, const CallForm* form, Extent extent) {
  using Kind = grammar::ConstraintKind;
  const bool is_whole = extent == Extent::kWhole;
  if (form == nullptr || form->style == ArgumentStyle::kJson) {
    return setup_.constraint->Set(
        {.kind = is_whole ? Kind::kJsonSchema : Kind::kJsonSchemaAtBegin, .text = tool.parameters});
  }
  const std::string grammar =
      std::string("root ::= arguments") + (is_whole ? "\n" : " .*\n") + ArgumentRules(*form, tool);
  return setup_.constraint->Set({.kind = Kind::kGbnf, .text = grammar});
}

Status AnswerForm::CheckTool(const Tool& tool) {
  const CallForm* const form = setup_.format->form();
  // A grammar leaves out what it cannot enforce of a schema.
  if (form != nullptr && form->style != ArgumentStyle::kJson) {
    CRIA_RETURN_IF_ERROR(Set(ArgumentsShape(tool)));
  }
  return SetArguments(tool, form, Extent::kBegin);
}

bool AnswerForm::Accepts(std::string_view text) {
  const auto ids = ValueOf(setup_.tokenizer.Encode(text, {.add_bos = false}));
  return std::ranges::all_of(
      ids, [this](int32_t id) { return setup_.constraint->Accept(id).has_value(); });
}

bool AnswerForm::Fits(const ToolCall& call) {
  // White space is the model's own affair.
  const std::optional<Json> arguments = TryReadJson(call.arguments);
  const Status set = Set(ArgumentsShape(ToolOf(call.name)));
  if (!arguments || !set || !Accepts(Written(*arguments))) return false;
  const auto next = setup_.constraint->FindNext(setup_.stop_token_ids, /*max_tokens=*/1);
  return next && next->mask.may_end;
}

const Tool& AnswerForm::ToolOf(std::string_view name) const {
  return *std::ranges::find(tools_->tools, name, &Tool::name);
}

Status AnswerForm::Set(const AnswerShape& shape) {
  grammar::ConstraintSource source = {.kind = grammar::ConstraintKind::kJsonObject,
                                      .text = shape.text};
  if (shape.kind == AnswerShape::Kind::kJsonSchema) {
    source.kind = grammar::ConstraintKind::kJsonSchema;
  } else if (shape.kind == AnswerShape::Kind::kGrammar) {
    source.kind = grammar::ConstraintKind::kGbnf;
  } else if (shape.kind == AnswerShape::Kind::kRegex) {
    source.kind = grammar::ConstraintKind::kRegex;
  }
  return setup_.constraint->Set(source);
}

void AnswerForm::CheckShape() {
  const AnswerShape& shape = setup_.options.shape;
  if (shape.kind == AnswerShape::Kind::kAny || need_ == AnswerNeed::kCall) return;
  if (setup_.constraint == nullptr) {
    RefuseField(shape.field, "is not supported: this server was started without constraints");
  }
  if (const Status status = Set(shape); !status) {
    // Waiting would not help: a constraint has always the same memory.
    if (status.error().code() == ErrorCode::kOutOfMemory) {
      throw RequestError(400, status.error().message(), shape.field);
    }
    throw ErrorOf(status.error(), shape.field);
  }
  need_ = AnswerNeed::kShape;
}

void AnswerForm::ChooseTools() {
  if (setup_.tools == nullptr || !setup_.tools->may_call()) return;
  tools_ = *setup_.tools;
  const bool is_required = tools_->choice == ToolUse::Choice::kRequired;
  if (setup_.constraint == nullptr) {
    if (is_required) {
      RefuseField("tool_choice",
                  "requires a call, which this server cannot enforce: it was started without "
                  "constraints");
    }
    return;
  }
  const auto part = setup_.format->NextPart(*tools_, {});
  if (part->content != CallPart::Content::kCalls || !Set(part->shape)) LoosenTools();
  if (is_required) need_ = AnswerNeed::kCall;
}

// A schema that cannot be enforced is shown to the model all the same; its calls are then objects.
void AnswerForm::LoosenTools() {
  for (Tool& tool : tools_->tools) {
    const Status status = CheckTool(tool);
    if (status) continue;
    if (tool.is_strict) {
      throw RequestError(400,
                         "the parameters of the tool " + tool.name +
                             " cannot be enforced: " + status.error().message(),
                         "tools");
    }
    tool.parameters = kAnyObjectSchema;
  }
}

}  // namespace cria::server
