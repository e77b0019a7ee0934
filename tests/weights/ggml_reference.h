#pragma once

// A second implementation that dequantizes ggml's blocks, for comparison. It reads the bytes of a
// block in their order, with the names of the structs in ggml-common.h.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

struct GgmlBlock {
  std::string_view name;
  uint32_t number;  // ggml's.
  size_t elements;
  size_t bytes;
  std::vector<size_t> scales;  // Offsets of the halves; MXFP4 has a byte.
};

inline const std::vector<GgmlBlock>& GgmlBlocks() {
  static const std::vector<GgmlBlock> blocks = {
      {"Q4_0", 2, 32, 18, {0}},       {"Q4_1", 3, 32, 20, {0, 2}},
      {"Q5_0", 6, 32, 22, {0}},       {"Q5_1", 7, 32, 24, {0, 2}},
      {"Q8_0", 8, 32, 34, {0}},       {"Q2_K", 10, 256, 84, {80, 82}},
      {"Q3_K", 11, 256, 110, {108}},  {"Q4_K", 12, 256, 144, {0, 2}},
      {"Q5_K", 13, 256, 176, {0, 2}}, {"Q6_K", 14, 256, 210, {208}},
      {"IQ4_NL", 20, 32, 18, {0}},    {"IQ4_XS", 23, 256, 136, {0}},
      {"MXFP4", 39, 32, 17, {0}},
  };
  return blocks;
}

class NaiveGgml {
 public:
  explicit NaiveGgml(const std::string& block) : block_(block) {}

  std::vector<float> Values(std::string_view type) {
    if (type == "Q4_0") {
      const float d = Half(0);
      for (int high : {0, 1}) {
        for (size_t j = 0; j < 16; ++j) Add(d * float(Nibble(2 + j, high) - 8));
      }
    } else if (type == "Q4_1") {
      const float d = Half(0);
      const float m = Half(2);
      for (int high : {0, 1}) {
        for (size_t j = 0; j < 16; ++j) Add(d * float(Nibble(4 + j, high)) + m);
      }
    } else if (type == "Q5_0" || type == "Q5_1") {
      const bool has_minimum = type == "Q5_1";
      const size_t qh = has_minimum ? 4 : 2;
      const float d = Half(0);
      for (int high : {0, 1}) {
        for (size_t j = 0; j < 16; ++j) {
          const size_t bit = j + (high ? 16 : 0);
          const int fifth = Byte(qh + bit / 8) >> (bit % 8) & 1;
          const int code = Nibble(qh + 4 + j, high) + 16 * fifth;
          Add(has_minimum ? d * float(code) + Half(2) : d * float(code - 16));
        }
      }
    } else if (type == "Q8_0") {
      for (size_t j = 0; j < 32; ++j) Add(Half(0) * float(static_cast<int8_t>(Byte(2 + j))));
    } else if (type == "IQ4_NL") {
      for (int high : {0, 1}) {
        for (size_t j = 0; j < 16; ++j) Add(Half(0) * float(kBook[Nibble(2 + j, high)]));
      }
    } else if (type == "MXFP4") {
      static constexpr float kFloats[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
      for (int high : {0, 1}) {
        for (size_t j = 0; j < 16; ++j) {
          const int code = Nibble(1 + j, high);
          const float magnitude = std::ldexp(kFloats[code % 8], Byte(0) - 127);
          Add(code < 8 ? magnitude : 0.0f - magnitude);  // Zero has no sign.
        }
      }
    } else if (type == "IQ4_XS") {
      const int scales_h = Byte(2) + 256 * Byte(3);
      for (size_t ib = 0; ib < 8; ++ib) {
        const int low = Nibble(4 + ib / 2, ib % 2 == 1);
        const int ls = low + 16 * (scales_h >> (2 * ib) & 3);
        const float dl = Half(0) * float(ls - 32);
        for (int high : {0, 1}) {
          for (size_t j = 0; j < 16; ++j) Add(dl * float(kBook[Nibble(8 + 16 * ib + j, high)]));
        }
      }
    } else if (type == "Q2_K") {
      size_t scale = 0;
      for (size_t half : {0, 32}) {
        for (int shift : {0, 2, 4, 6}) {
          for (size_t part : {0, 16}) {
            const int sc = Byte(scale++);
            const float dl = Half(80) * float(sc & 15);
            const float ml = Half(82) * float(sc >> 4);
            for (size_t l = 0; l < 16; ++l) {
              Add(dl * float(Byte(16 + half + part + l) >> shift & 3) - ml);
            }
          }
        }
      }
    } else if (type == "Q3_K") {
      // Sixteen numbers of six bits in twelve bytes: as three words of four bytes.
      int scales[16];
      for (size_t j = 0; j < 4; ++j) {
        const int a = Byte(96 + j);
        const int b = Byte(100 + j);
        const int c = Byte(104 + j);
        scales[j] = (a & 15) | (c & 3) << 4;
        scales[4 + j] = (b & 15) | (c >> 2 & 3) << 4;
        scales[8 + j] = a >> 4 | (c >> 4 & 3) << 4;
        scales[12 + j] = b >> 4 | (c >> 6 & 3) << 4;
      }
      int mask = 1;
      size_t scale = 0;
      for (size_t half : {0, 32}) {
        for (int shift : {0, 2, 4, 6}) {
          for (size_t part : {0, 16}) {
            const float dl = Half(108) * float(scales[scale++] - 32);
            for (size_t l = part; l < part + 16; ++l) {
              const int low = Byte(32 + half + l) >> shift & 3;
              Add(dl * float(low - ((Byte(l) & mask) != 0 ? 0 : 4)));
            }
          }
          mask <<= 1;
        }
      }
    } else if (type == "Q4_K" || type == "Q5_K") {
      const bool has_fifth = type == "Q5_K";
      const size_t codes = has_fifth ? 48 : 16;
      for (size_t pair = 0; pair < 4; ++pair) {
        for (int high : {0, 1}) {
          const size_t group = 2 * pair + size_t(high);
          const float d = Half(0) * float(PackedScale(group));
          const float m = Half(2) * float(PackedMinimum(group));
          for (size_t l = 0; l < 32; ++l) {
            int code = Nibble(codes + 32 * pair + l, high);
            if (has_fifth && (Byte(16 + l) & (1 << group)) != 0) code += 16;
            Add(d * float(code) - m);
          }
        }
      }
    } else if (type == "Q6_K") {
      values_.resize(256);
      for (size_t half : {0, 1}) {
        for (size_t l = 0; l < 32; ++l) {
          const size_t ql = half * 64 + l;
          const int qh = Byte(128 + half * 32 + l);
          const int codes[] = {
              Nibble(ql, 0) | (qh & 3) << 4, Nibble(ql + 32, 0) | (qh >> 2 & 3) << 4,
              Nibble(ql, 1) | (qh >> 4 & 3) << 4, Nibble(ql + 32, 1) | (qh >> 6 & 3) << 4};
          for (size_t k = 0; k < 4; ++k) {
            const auto sc = static_cast<int8_t>(Byte(192 + half * 8 + l / 16 + 2 * k));
            values_[half * 128 + 32 * k + l] = Half(208) * float(sc) * float(codes[k] - 32);
          }
        }
      }
    }
    return values_;
  }

 private:
  static constexpr int kBook[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

  int Byte(size_t i) const { return static_cast<unsigned char>(block_[i]); }
  int Nibble(size_t i, int high) const { return high ? Byte(i) / 16 : Byte(i) % 16; }
  float Half(size_t i) const {
    _Float16 value;
    std::memcpy(&value, block_.data() + i, 2);
    return static_cast<float>(value);
  }
  int PackedScale(size_t j) const {
    return j < 4 ? Byte(4 + j) & 63 : (Byte(8 + j) & 15) | (Byte(j) >> 6) << 4;
  }
  int PackedMinimum(size_t j) const {
    return j < 4 ? Byte(8 + j) & 63 : Byte(8 + j) >> 4 | (Byte(4 + j) >> 6) << 4;
  }
  void Add(float value) { values_.push_back(value); }

  const std::string& block_;
  std::vector<float> values_;
};

}  // namespace cria::support
