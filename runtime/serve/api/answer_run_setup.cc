// What is found out before an answer begins: what can be enforced, and what the vocabulary has.

#include <utility>

#include "serve/api/answer_run.h"
#include "serve/api/request_error.h"

namespace cria::serve {

AnswerRun::AnswerRun(const AnswerSetup& setup, AnswerListener& listener)
    : setup_(setup),
      listener_(listener),
      session_(setup.session),
      tokenizer_(setup.tokenizer),
      reader_({.on_name = [this](std::string_view name) { BeginCall(name); },
               .on_arguments =
                   [this](std::string_view piece) {
                     if (num_calls_ > 0) listener_.OnArguments(num_calls_ - 1, piece);
                   }}) {
  SamplerOptions options = setup_.options.sampler;
  options.seed = setup_.seed;
  sampler_.emplace(ValueOf(Sampler::Create(options, session_.vocab_size()), "logit_bias"));
  if (!setup_.options.stop.empty()) {
    stop_strings_.emplace(ValueOf(StopStrings::Create(setup_.options.stop), "stop"));
  }
  log_probabilities_.set_count(setup_.options.top_log_probabilities);
  ChooseTools();
  CheckShape();
  FindMarkers();
}

// Some vocabularies have control tokens around reasoning, of which the detokenizer makes no text.
void AnswerRun::FindMarkers() {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  for (const std::string_view text : {setup_.tags.open, setup_.tags.close}) {
    if (text.empty()) continue;
    const auto ids = ValueOf(tokenizer_.Encode(text, {.add_bos = false, .parse_special = true}));
    if (ids.size() == 1 &&
        vocabulary.piece_types[static_cast<size_t>(ids[0])] == PieceType::kControl) {
      markers_.emplace_back(ids[0], text);
    }
  }
}

Status AnswerRun::Constrain(const AnswerShape& shape) {
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

void AnswerRun::CheckShape() {
  const AnswerShape& shape = setup_.options.shape;
  if (shape.kind == AnswerShape::Kind::kAny || need_ == Need::kCall) return;
  if (setup_.constraint == nullptr) {
    RefuseField(shape.field, "is not supported: this server was started without constraints");
  }
  if (const Status status = Constrain(shape); !status) {
    // Waiting would not help: a constraint has always the same memory.
    if (status.error().code() == ErrorCode::kOutOfMemory) {
      throw RequestError(400, status.error().message(), shape.field);
    }
    throw ErrorOf(status.error(), shape.field);
  }
  need_ = Need::kShape;
}

void AnswerRun::ChooseTools() {
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
  if (part->content != CallPart::Content::kCalls || !Constrain(part->shape)) LoosenTools();
  if (is_required) need_ = Need::kCall;
}

// A schema that cannot be enforced is shown to the model all the same; its calls are then objects.
void AnswerRun::LoosenTools() {
  for (Tool& tool : tools_->tools) {
    const Status status = Constrain(ArgumentsShape(tool));
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

}  // namespace cria::serve
