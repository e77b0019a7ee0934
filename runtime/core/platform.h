#pragma once

// What Cria needs from the operating system. It is declared here so that the runtime can call it,
// and implemented in one folder of platforms/, which the programs link.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::platform {

// A read-only mapping of part of a file, or a copy of it. The file must not be truncated while the
// mapping exists: reading a page past the new end raises SIGBUS, which a library cannot turn into
// an error.
class FileMapping {
 public:
  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept { *this = std::move(other); }
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend class File;
  void* base_ = nullptr;  // Start of the mapping: a page boundary at or before bytes_.
  size_t mapped_bytes_ = 0;
  std::span<const std::byte> bytes_;
};

// A file opened for reading, or a part of one.
class File {
 public:
  static Result<File> Open(const std::string& path);
  // The `bytes` from `offset` on, or all from there, of a file that is already open, such as an
  // asset inside an Android package. The descriptor is duplicated; its position is neither used nor
  // moved.
  static Result<File> OfDescriptor(int descriptor, uint64_t offset, std::optional<uint64_t> bytes);

  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  // For a file from a descriptor: a word that stands for it in messages.
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Whether Map maps the file's own pages. If the part does not begin at a multiple of 64, Map
  // reads into private memory instead, so that data aligned in the part is aligned in memory.
  bool is_mappable() const { return begin_ % kMappableAlignment == 0; }

  // Offsets count from the beginning of the part; a range that is not inside it is an error.
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const;
  Result<FileMapping> Map(uint64_t offset, uint64_t bytes) const;

  // The same part of the same file, even if the file was renamed or removed.
  Result<File> Duplicate() const;

 private:
  static constexpr uint64_t kMappableAlignment = 64;

  File() = default;
  int descriptor_ = -1;
  uint64_t begin_ = 0;  // Offset of the part in the file.
  uint64_t size_bytes_ = 0;
  std::string path_;
};

// Says that the pages of a part of a FileMapping are used in no order: a page that is used is read
// without those around it.
void ExpectUseInNoOrder(std::span<const std::byte> mapped);
// Begins to read a part of a FileMapping that is about to be used, and does not wait. Looks only at
// the first and the last page: if both are in memory, it does nothing.
void BeginToRead(std::span<const std::byte> mapped);

// Zeroed, private, page-aligned memory; its pages become resident when first touched.
class PageBlock {
 public:
  // Also fails with kOutOfMemory if a 32-bit program cannot address so much.
  static Result<PageBlock> Allocate(uint64_t bytes);

  PageBlock() = default;
  PageBlock(PageBlock&& other) noexcept { *this = std::move(other); }
  PageBlock& operator=(PageBlock&& other) noexcept;
  ~PageBlock();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Makes the pages of private memory that is about to be written resident, all at once. Does nothing
// if the system cannot.
void MakeResident(std::span<std::byte> memory);

// Figures of this process, in bytes; 0 if the system does not provide a figure.
struct MemoryUsage {
  uint64_t private_bytes = 0;      // Anonymous pages that are resident.
  uint64_t file_mapped_bytes = 0;  // Pages of mapped files that are resident.
  uint64_t peak_resident_bytes = 0;
  uint64_t virtual_bytes = 0;  // Address space of all mappings, whether touched or not.
  uint64_t peak_virtual_bytes = 0;
  uint64_t major_faults = 0;
};
// Allocates nothing on the heap.
MemoryUsage ReadMemoryUsage();

// Limits of the system for this process, in bytes; absent if no limit is set or the system does not
// provide it.
struct MemoryLimits {
  // The lowest limit of the process's control group and of those above it that are visible. All
  // processes of a group share it, and how much of it is free is not known: a group is charged for
  // file pages too, which the kernel drops when memory is needed, so the limit minus the charge
  // would be too low.
  std::optional<uint64_t> cgroup_bytes;
  std::optional<uint64_t> address_space_bytes;  // RLIMIT_AS: compare with virtual_bytes.
};
MemoryLimits ReadMemoryLimits();

// The stack size of a thread that is created with default attributes.
uint64_t ThreadStackBytes();

// Lets all threads share one heap, so that none reserves address space for a heap of its own (64 MB
// each with glibc on 64 bits; does nothing elsewhere). Call it before threads start.
void UseOneHeap();
// Gives the pages of freed memory back to the system, also those between blocks that are in use.
void ReturnFreedMemory();

// One logical processor that this process may run on.
struct Processor {
  uint32_t core = 0;                    // Equal for all processors of a core.
  uint64_t max_frequency_hz = 0;        // 0 if the system does not provide it.
  uint32_t microarchitecture_rank = 0;  // Larger is faster; equal for equal cores.
};

struct CpuTopology {
  std::string name;  // "Cortex-A76", or the brand string.
  std::vector<Processor> processors;
};
CpuTopology ReadCpuTopology();

// The instruction sets of this processor that decide which kernels run, with spaces between:
// "sse4.1 avx avx2 fma". Empty if the system does not provide them.
std::string InstructionSets();
// Whether this processor has the dot products of int8 of ARMv8.2 (SDOT).
bool HasArmDotProducts();
// Whether it has the products of matrices of int8 of ARMv8.6 (SMMLA).
bool HasArmInt8Matrices();

// What a Raspberry Pi's firmware says of its heat and its power.
struct Throttling {
  bool is_slowed = false;  // The processor is slower now than it could be, for either reason.
  bool is_under_voltage = false;
  bool was_slowed = false;  // Since the board was started.
  bool was_under_voltage = false;
};

// The current state of the processor; absent if the system does not provide it.
struct ProcessorState {
  std::optional<double> temperature_celsius;  // The hottest sensor's.
  std::optional<uint64_t> frequency_hz;  // The frequency of the fastest processor that is allowed.
  std::optional<Throttling> throttling = {};
};
ProcessorState ReadProcessorState();

// Whether this process can open another file: false if it or the system has as many open as the
// limit allows.
bool CanOpenAnotherFile();

// The folder for files that can be made again: XDG_CACHE_HOME/cria or HOME/.cache/cria; empty if
// neither variable is set.
std::string CacheFolder();
// The folder for what a user keeps, such as models: XDG_DATA_HOME/cria or HOME/.local/share/cria;
// empty if neither variable is set.
std::string DataFolder();
// The folder for what a program remembers between its runs: XDG_STATE_HOME/cria or
// HOME/.local/state/cria; empty if neither variable is set.
std::string StateFolder();

}  // namespace cria::platform
