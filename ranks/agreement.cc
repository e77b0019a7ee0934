#include "ranks/agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"

namespace cria::ranks {
namespace {

// A longer sentence is cut.
constexpr size_t kMaxSentence = 1000;

struct Report {
  uint32_t has_failed = 0;
  ErrorCode code = ErrorCode::kInternal;
  std::array<char, kMaxSentence> sentence = {};

  std::string_view text() const { return sentence.data(); }
};

Report ReportOf(const Status& status) {
  Report report;
  if (status) return report;
  report.has_failed = 1;
  report.code = status.error().code();
  const std::string& sentence = status.error().message();
  std::copy_n(sentence.data(), std::min(sentence.size(), kMaxSentence - 1), report.sentence.data());
  return report;
}

Status StatusOf(const Report& report) {
  if (report.has_failed == 0) return {};
  return Fail(report.code, std::string(report.text()));
}

// What rank 0 makes of its own status and of what the others sent.
Status Judge(const Status& own, std::span<const std::byte> same,
             const std::vector<std::vector<std::byte>>& received, std::string_view what) {
  CRIA_RETURN_IF_ERROR(own);
  for (size_t other = 1; other < received.size(); ++other) {
    Report report;
    std::memcpy(&report, received[other].data(), sizeof report);
    report.sentence.back() = '\0';
    if (report.has_failed != 0) {
      return Fail(report.code, Format("rank {}: {}", other, report.text()));
    }
    if (!std::ranges::equal(std::span(received[other]).subspan(sizeof report), same)) {
      return Fail(ErrorCode::kUsage,
                  Format("rank {} has {} than rank 0: give all ranks the same", other, what));
    }
  }
  return {};
}

}  // namespace

Status Agree(Collective& collective, const Status& own, std::span<const std::byte> same,
             std::string_view what) {
  const Report report = ReportOf(own);
  std::vector<std::byte> sent(sizeof report + same.size());
  std::memcpy(sent.data(), &report, sizeof report);
  std::ranges::copy(same, sent.begin() + sizeof report);
  std::vector<std::vector<std::byte>> received;
  std::vector<std::span<std::byte>> places;
  if (collective.rank() == 0) {
    received.assign(collective.num_ranks(), std::vector<std::byte>(sent.size()));
    places.assign(received.begin(), received.end());
  }
  CRIA_RETURN_IF_ERROR(collective.Gather(sent, places));
  Report verdict;
  if (collective.rank() == 0) verdict = ReportOf(Judge(own, same, received, what));
  CRIA_RETURN_IF_ERROR(collective.Broadcast(std::as_writable_bytes(std::span(&verdict, 1))));
  // A rank's own error has more to say, such as a remedy.
  CRIA_RETURN_IF_ERROR(own);
  return StatusOf(verdict);
}

}  // namespace cria::ranks
