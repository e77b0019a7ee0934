#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "converter/calibrate/calibration_report.h"
#include "converter/calibrate/resume_folder.h"
#include "converter/plan_conversion.h"
#include "converter/write/progress.h"
#include "core/thread_pool.h"
#include "cria/error.h"

namespace cria {

// Chooses the codes of the plan for its tokens, and keeps them in scratch files beside
// `output_path`. If the target leaves two choices, both are calibrated; the plan becomes that of
// the one that changes the predictions of held-back text less, which becomes the first choice, and
// a note says so. With `resume_folder`, it goes on with what an earlier run kept there. The folders
// in use are added to `resume`.
Result<CalibrationReport> CalibratePlan(const std::filesystem::path& output_path,
                                        const std::optional<std::filesystem::path>& resume_folder,
                                        const ThreadPool& threads, const ProgressCallback& progress,
                                        PlannedConversion& planned,
                                        std::vector<ResumeFolder>& resume);

}  // namespace cria
