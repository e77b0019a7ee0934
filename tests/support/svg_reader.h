#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

// What cli/plot/svg writes, read back.
struct SvgNumbers {
  struct Point {
    double x, y;    // The numbers.
    double cx, cy;  // Pixels.
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
  };
  struct Line {
    std::string name;
    double value;
    double pixel;
  };

  std::vector<Series> series;
  // A bar of the chart with this title. Its length is in pixels.
  struct Bar {
    std::string chart;
    std::string name;
    double value;
    double length;
  };
  std::vector<Line> levels, marks;
  std::vector<Bar> bars;
  std::vector<std::string> texts;
};

inline std::string Unescaped(std::string text) {
  for (const auto& [name, character] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
      text.replace(at, std::string_view(name).size(), character);
    }
  }
  return text;
}

// Throws std::runtime_error if an element is not closed where it should be.
inline SvgNumbers ReadSvg(const std::string& svg) {
  using Attributes = std::map<std::string, std::string>;
  SvgNumbers numbers;
  std::vector<std::string> open;
  Attributes group;  // What the innermost <g> has.
  size_t at = 0;
  while ((at = svg.find('<', at)) != std::string::npos) {
    const size_t end = svg.find('>', at);
    if (end == std::string::npos) throw std::runtime_error("a tag has no end");
    std::string tag = svg.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) {
        throw std::runtime_error("</" + tag.substr(1) + "> closes nothing");
      }
      open.pop_back();
      continue;
    }
    const bool is_closed = tag.ends_with('/');
    if (is_closed) tag.pop_back();
    const std::string name = tag.substr(0, tag.find(' '));
    Attributes attributes;
    for (size_t i = name.size(); (i = tag.find_first_not_of(' ', i)) != std::string::npos;) {
      const size_t equals = tag.find("=\"", i);
      const size_t quote = equals == std::string::npos ? equals : tag.find('"', equals + 2);
      if (quote == std::string::npos) throw std::runtime_error("an attribute has no value: " + tag);
      attributes[tag.substr(i, equals - i)] = Unescaped(tag.substr(equals + 2, quote - equals - 2));
      i = quote + 1;
    }
    if (!is_closed) open.push_back(name);
    const auto number = [&](const char* key) { return std::stod(attributes.at(key)); };
    if (name == "g") {
      group = attributes;
      if (group["class"] == "series") numbers.series.push_back({group["data-name"], {}});
    } else if (name == "circle") {
      numbers.series.back().points.push_back(
          {number("data-x"), number("data-y"), number("cx"), number("cy")});
    } else if (name == "rect" && group["class"] == "bars" && open.back() == "rect") {
      numbers.bars.push_back(
          {group["data-name"], attributes.at("data-name"), number("data-x"), number("width")});
    } else if (name == "line" && group["class"] == "level" && open.back() == "g") {
      numbers.levels.push_back({group["data-name"], std::stod(group["data-y"]), number("y1")});
    } else if (name == "line" && group["class"] == "mark" && open.back() == "g") {
      numbers.marks.push_back({group["data-name"], std::stod(group["data-x"]), number("x1")});
    } else if (name == "text") {
      numbers.texts.push_back(Unescaped(svg.substr(at, svg.find('<', at) - at)));
    }
  }
  if (!open.empty()) throw std::runtime_error("<" + open.back() + "> is not closed");
  return numbers;
}

}  // namespace cria::support
