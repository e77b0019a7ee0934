#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cria::cli {

// Places in the picture, in pixels, which all charts share.
inline constexpr double kChartLeft = 86.0;
inline constexpr double kChartRight = 630.0;
inline constexpr double kChartTop = 34.0;  // Below the chart's title.
// The style sheet has so many colours, as classes "a0" and on. More series and bars share them.
inline constexpr size_t kNumChartColors = 8;

// The text in XML: characters of control, which XML 1.0 does not have, are left out.
std::string Escaped(std::string_view text);

// A number of pixels, rounded to hundredths.
std::string Pixels(double value);

// The elements of a picture, one after another.
class SvgText {
 public:
  // `style`: the names of classes of the picture's style sheet.
  void Line(double x1, double y1, double x2, double y2, const char* style);
  // `anchor`: "start", "middle" or "end".
  void Text(double x, double y, const char* style, const char* anchor, std::string_view text);
  // Text over areas: a halo keeps it readable. The halo is a text of its own, because not every
  // program that draws SVG knows paint-order.
  void TextOver(double x, double y, const char* anchor, std::string_view text);

  std::string svg;
};

}  // namespace cria::cli
