#include "cli/eval/choice_question.h"

#include <algorithm>
#include <utility>

#include "cli/input/json_document.h"
#include "core/format.h"

namespace cria::cli {
namespace {

using jinja::Kind;
using jinja::Value;

Result<ChoiceQuestion> ReadQuestion(std::string_view line, const std::string& where) {
  const auto bad = [&](std::string_view problem) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", where, problem));
  };
  JsonDocument document(line);
  CRIA_ASSIGN_OR_RETURN(const Value value, document.Read(where, "a question"));
  if (!value.is(Kind::kDict)) return bad("is not an object with context, choices and label");
  const auto find = [&](std::string_view name, Kind kind) {
    const Value* found = jinja::Find(value.dict->entries, name);
    return found != nullptr && found->is(kind) ? found : nullptr;
  };
  const Value* const context = find("context", Kind::kString);
  const Value* const choices = find("choices", Kind::kList);
  const Value* const label = find("label", Kind::kInt);
  if (context == nullptr) return bad("has no context, which is a text");
  if (choices == nullptr) return bad("has no choices, which are a list of texts");
  if (label == nullptr) return bad("has no label, which is the index of the right choice");
  ChoiceQuestion question;
  question.context = document.String(*context);
  for (const Value& choice : choices->list->items) {
    if (!choice.is(Kind::kString)) return bad("has a choice that is not a text");
    question.choices.push_back(document.String(choice));
    if (question.choices.back().empty()) return bad("has an empty choice");
  }
  if (question.choices.size() < 2) return bad("has fewer than two choices");
  if (std::cmp_less(label->integer, 0) ||
      std::cmp_greater_equal(label->integer, question.choices.size())) {
    return bad(Format("has the label {}, but choices 0 to {}", label->integer,
                      question.choices.size() - 1));
  }
  question.label = static_cast<size_t>(label->integer);
  return question;
}

}  // namespace

Result<std::vector<ChoiceQuestion>> ReadChoiceQuestions(std::string_view lines,
                                                        const std::string& where) {
  std::vector<ChoiceQuestion> questions;
  for (size_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    CRIA_ASSIGN_OR_RETURN(ChoiceQuestion question,
                          ReadQuestion(line, Format("{}: line {}", where, number)));
    questions.push_back(std::move(question));
  }
  if (questions.empty()) return Fail(ErrorCode::kInvalidFile, where + ": has no questions");
  return questions;
}

}  // namespace cria::cli
