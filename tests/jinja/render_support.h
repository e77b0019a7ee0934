#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "jinja/template.h"
#include "jinja/text.h"

namespace cria::jinja {

// 2024-12-01, a Sunday, at 15:04:05.
inline std::tm FixedTime() {
  std::tm time = {};
  time.tm_year = 124;
  time.tm_mon = 11;
  time.tm_mday = 1;
  time.tm_hour = 15;
  time.tm_min = 4;
  time.tm_sec = 5;
  time.tm_yday = 335;
  return time;
}

// Renders with these variables: `user` is "<u>Öl</u>" and not trusted, `empty` an empty string,
// `words` the list of b, a and C, `numbers` that of 3, 1 and 2, `messages` that of two dictionaries
// with role and content, `nothing` None.
inline Result<std::vector<Segment>> TryRender(std::string_view source, const Limits& limits = {}) {
  const Template parsed(source, limits);
  Context context(limits, FixedTime);
  const auto list = [&](std::initializer_list<Value> items) {
    Growing<Value> growing(context);
    for (const Value& item : items) growing.Add(item);
    return MakeList(context, growing.items());
  };
  const auto text = [&](std::string_view bytes) { return Trusted(context, bytes); };
  const auto message = [&](std::string_view role, std::string_view content) {
    Growing<Entry> entries(context);
    entries.Add({text("role"), text(role)});
    entries.Add({text("content"), Untrusted(context, content)});
    return MakeDict(context, entries.items());
  };
  const Variable globals[] = {
      {"user", Untrusted(context, "<u>Öl</u>")},
      {"empty", text("")},
      {"words", list({text("b"), text("a"), text("C")})},
      {"numbers", list({Int(3), Int(1), Int(2)})},
      {"messages", list({message("user", " Hi "), message("assistant", "Yes?")})},
      {"nothing", None()},
  };
  return parsed.Render(context, globals);
}

inline std::string Joined(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

inline std::string RenderText(std::string_view source) {
  const auto segments = TryRender(source);
  if (!segments) return "error: " + segments.error().message();
  return Joined(*segments);
}

// The output of an expression, or "error: " and the sentence.
inline std::string Print(std::string_view expression) {
  return RenderText("{{ " + std::string(expression) + " }}");
}

// The sentence that rendering fails with.
inline std::string FailureOf(std::string_view source, const Limits& limits = {}) {
  const auto segments = TryRender(source, limits);
  return segments ? "no error, but: " + Joined(*segments) : segments.error().message();
}

}  // namespace cria::jinja
