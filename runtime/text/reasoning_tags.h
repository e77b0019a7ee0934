#pragma once

#include <array>
#include <string_view>

namespace cria {

// What a model writes before and after its reasoning.
struct ReasoningTags {
  std::string_view open;
  std::string_view close;
};

// The pairs that models of known families use; the first is by far the most usual.
inline constexpr std::array<ReasoningTags, 5> kReasoningTags = {
    {{"<think>", "</think>"},
     {"[THINK]", "[/THINK]"},
     {"<|begin_of_thought|>", "<|end_of_thought|>"},
     {"<thought>", "</thought>"},
     {"<thinking>", "</thinking>"}}};

}  // namespace cria
