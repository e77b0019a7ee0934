#include "cli/plot/svg_text.h"

#include <cmath>

#include "core/format.h"

namespace cria::cli {

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    switch (character) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(character) >= 0x20) escaped += character;
    }
  }
  return escaped;
}

std::string Pixels(double value) { return Format("{}", std::round(value * 100.0) / 100.0); }

void SvgText::Line(double x1, double y1, double x2, double y2, const char* style) {
  svg += Format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", Pixels(x1),
                Pixels(y1), Pixels(x2), Pixels(y2), style);
}

void SvgText::Text(double x, double y, const char* style, const char* anchor,
                   std::string_view text) {
  svg += Format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", Pixels(x),
                Pixels(y), style, anchor, Escaped(text));
}

void SvgText::TextOver(double x, double y, const char* anchor, std::string_view text) {
  Text(x, y, "halo", anchor, text);
  Text(x, y, "ink", anchor, text);
}

}  // namespace cria::cli
