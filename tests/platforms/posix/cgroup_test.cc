#include "posix/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/format.h"
#include "support/mebibyte.h"

namespace cria::platform {
namespace {

using support::kMebibyte;

// A line of mountinfo; the fields that are not read are invented.
std::string MountLine(std::string_view type, std::string_view options, std::string_view point,
                      std::string_view root = "/") {
  return Format("41 31 0:38 {} {} rw,nosuid,relatime shared:9 - {} cgroup {}\n", root, point, type,
                options);
}

std::string Version1Mount(std::string_view root = "/") {
  return MountLine("cgroup", "rw,memory", "/sys/fs/cgroup/memory", root);
}

std::string Version2Mount(std::string_view root = "/") {
  return MountLine("cgroup2", "rw,nsdelegate", "/sys/fs/cgroup", root);
}

// A root directory with files of the test's making.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = Format("{}cria_cgroup_{}", testing::TempDir(), getpid());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directory(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, std::string_view contents) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << contents;
  }

  // The process's groups and where they are mounted.
  void WriteProc(std::string_view cgroup, std::string_view mountinfo) {
    Write("/proc/self/cgroup", cgroup);
    Write("/proc/self/mountinfo",
          "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" + std::string(mountinfo));
  }

  std::optional<uint64_t> Limit() const { return CgroupMemoryLimit(root_); }
  std::optional<double> Quota() const { return CgroupProcessorQuota(root_); }

  std::string root_;
};

TEST_F(CgroupTest, NoFilesNoLimit) {
  EXPECT_EQ(Limit(), std::nullopt);
  WriteProc("", "");
  EXPECT_EQ(Limit(), std::nullopt);
  WriteProc("0::/a\n4:memory:/a\n", "");
  EXPECT_EQ(Limit(), std::nullopt);
  WriteProc("0::/a\n4:memory:/a\n", Version2Mount() + Version1Mount());
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(CgroupTest, Version2ReadsMemoryMax) {
  WriteProc("0::/user.slice/session-1.scope\n", Version2Mount());
  Write("/sys/fs/cgroup/user.slice/session-1.scope/memory.max", "268435456\n");
  EXPECT_EQ(Limit(), 256 * kMebibyte);
  Write("/sys/fs/cgroup/user.slice/session-1.scope/memory.max", "max\n");
  EXPECT_EQ(Limit(), std::nullopt);
  Write("/sys/fs/cgroup/user.slice/session-1.scope/memory.max", "0\n");
  EXPECT_EQ(Limit(), 0u);
}

TEST_F(CgroupTest, Version1ReadsLimitInBytes) {
  WriteProc("5:cpu,memory:/a\n3:cpuset:/other\n",
            MountLine("cgroup", "rw,cpuset", "/sys/fs/cgroup/cpuset") + Version1Mount());
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
  Write("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  Write("/sys/fs/cgroup/cpuset/a/memory.limit_in_bytes", "2\n");
  EXPECT_EQ(Limit(), kMebibyte);
}

TEST_F(CgroupTest, Version1LargestCountIsNoLimit) {
  WriteProc("4:memory:/a\n", Version1Mount());
  // With pages of 4 and 64 kB, and with 32 bits.
  for (const auto* none : {"9223372036854771712", "9223372036854710272", "8796093018112"}) {
    Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", none);
    EXPECT_EQ(Limit(), std::nullopt) << none;
  }
}

TEST_F(CgroupTest, HybridCountsBothHierarchies) {
  WriteProc("4:memory:/a\n1:name=systemd:/\n0::/b\n",
            Version1Mount() + MountLine("cgroup2", "rw", "/sys/fs/cgroup/unified"));
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n");
  EXPECT_EQ(Limit(), 3000u);  // Version 2 without the memory controller has no file.
  Write("/sys/fs/cgroup/unified/b/memory.max", "2000\n");
  EXPECT_EQ(Limit(), 2000u);
  Write("/sys/fs/cgroup/unified/b/memory.max", "4000\n");
  EXPECT_EQ(Limit(), 3000u);
}

TEST_F(CgroupTest, TheLowestOfAllParentsCounts) {
  WriteProc("0::/a/b/c\n", Version2Mount());
  Write("/sys/fs/cgroup/a/b/c/memory.max", "3000\n");
  Write("/sys/fs/cgroup/a/memory.max", "1000\n");
  Write("/sys/fs/cgroup/a/sibling/memory.max", "1\n");
  EXPECT_EQ(Limit(), 1000u);  // a/b is missing.
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(Limit(), 1000u);
  Write("/sys/fs/cgroup/a/b/memory.max", "500\n");
  EXPECT_EQ(Limit(), 500u);
  Write("/sys/fs/cgroup/memory.max", "400\n");
  EXPECT_EQ(Limit(), 400u);
}

TEST_F(CgroupTest, NamespacedContainerSeesItsGroupAsRoot) {
  WriteProc("0::/\n", Version2Mount());
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(Limit(), 1000u);
}

TEST_F(CgroupTest, BindMountedRootIsTakenOffThePath) {
  WriteProc("4:memory:/docker/f00\n", Version1Mount("/docker/f00"));
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(Limit(), 1000u);
  WriteProc("4:memory:/docker/f00/child\n", Version1Mount("/docker/f00"));
  Write("/sys/fs/cgroup/memory/child/memory.limit_in_bytes", "900\n");
  EXPECT_EQ(Limit(), 900u);
}

TEST_F(CgroupTest, MountsThatDoNotShowTheGroupDoNotCount) {
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  Write("/sys/fs/cgroup/memory/bar/memory.limit_in_bytes", "1000\n");
  for (const auto* group : {"/docker/f00bar", "/docker", "/bar", "/"}) {
    WriteProc(Format("4:memory:{}\n", group), Version1Mount("/docker/f00"));
    EXPECT_EQ(Limit(), std::nullopt) << group;
  }
  // The same hierarchy is mounted a second time, where the group can be seen.
  WriteProc("4:memory:/bar\n",
            Version1Mount("/docker/f00") + MountLine("cgroup", "rw,memory", "/mnt/whole"));
  Write("/mnt/whole/bar/memory.limit_in_bytes", "700\n");
  EXPECT_EQ(Limit(), 700u);
}

TEST_F(CgroupTest, GroupsOutsideTheNamespaceDoNotLeadOutOfTheMount) {
  Write("/sys/fs/cgroup/unified/memory.max", "1000\n");
  Write("/sys/fs/cgroup/b/memory.max", "1000\n");
  const std::string mount = MountLine("cgroup2", "rw", "/sys/fs/cgroup/unified");
  for (const auto* group : {"/..", "/../b", "/x/../../b"}) {
    WriteProc(Format("0::{}\n", group), mount);
    EXPECT_EQ(Limit(), std::nullopt) << group;
  }
  // A name may begin with dots.
  WriteProc("0::/..b\n", mount);
  EXPECT_EQ(Limit(), 1000u);
  // Seen from a namespace, a mount made outside has a root above it.
  WriteProc("0::/../b\n", MountLine("cgroup2", "rw", "/sys/fs/cgroup", "/.."));
  EXPECT_EQ(Limit(), 1000u);
}

TEST_F(CgroupTest, DeletedGroupsStillHaveParents) {
  WriteProc("0::/a/gone (deleted)\n", Version2Mount());
  Write("/sys/fs/cgroup/a/memory.max", "1000\n");
  EXPECT_EQ(Limit(), 1000u);
}

TEST_F(CgroupTest, UnusualNamesAreFound) {
  WriteProc("0::/a:b\\x c\n",
            MountLine("cgroup2", "rw", R"(/mnt/two\040words\134\011\043)", R"(/a:b\134x\040c)"));
  Write("/mnt/two words\\\t#/memory.max", "1000\n");
  EXPECT_EQ(Limit(), 1000u);
}

TEST_F(CgroupTest, NumbersThatAreNoneSetNoLimit) {
  WriteProc("0::/a\n", Version2Mount());
  for (const auto* garbage :
       {"", "\n", "x", "12x", "0x10", "-1", "+1", " 1", "1 2", "1.5", "maximum",
        "18446744073709551616", "99999999999999999999999999", "\n12"}) {
    Write("/sys/fs/cgroup/a/memory.max", garbage);
    EXPECT_EQ(Limit(), std::nullopt) << garbage;
  }
  Write("/sys/fs/cgroup/a/memory.max", "12");  // Without a newline.
  EXPECT_EQ(Limit(), 12u);
}

TEST_F(CgroupTest, GarbageInProcSetsNoLimit) {
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  Write("/memory.max", "1000\n");
  for (const std::string_view cgroup : {"0", "0:", "0::", "::", ":::", "\n\n", "memory", "0::a"}) {
    WriteProc(cgroup, Version2Mount());
    EXPECT_EQ(Limit(), std::nullopt) << cgroup;
  }
  for (const std::string_view mount :
       {"-", " - ", " - cgroup2", " - cgroup2 ", "cgroup2\n", "1 2 3 4 5 6 cgroup2 x y\n",
        "41 31 0:38 / /sys/fs/cgroup rw - cgroup3 x rw\n",
        "41 31 0:38 \\04 \\ rw - cgroup2 x rw\n"}) {
    WriteProc("0::/\n", mount);
    // Were an empty path taken for a mount point, the file in the root directory would count.
    EXPECT_EQ(Limit(), std::nullopt) << mount;
  }
}

TEST_F(CgroupTest, LongTablesOfMountsAreReadToTheirEnd) {
  std::string mounts;
  for (int i = 0; i < 2000; ++i) {
    mounts += Format("{} 1 0:{} / /run/{} rw - tmpfs tmpfs rw\n", i + 50, i, i);
  }
  WriteProc("0::/a\n", mounts + Version2Mount());
  Write("/sys/fs/cgroup/a/memory.max", "1000\n");
  EXPECT_EQ(Limit(), 1000u);
}

TEST_F(CgroupTest, Version2ReadsCpuMax) {
  WriteProc("0::/a/b\n", Version2Mount());
  EXPECT_EQ(Quota(), std::nullopt);
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), std::nullopt);
  Write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 1.5);
  Write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota(), 0.5);
  Write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(CgroupTest, Version1ReadsQuotaAndPeriod) {
  WriteProc("5:cpu,cpuacct:/a\n3:memory:/other\n",
            MountLine("cgroup", "rw,cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct") + Version1Mount());
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/a";
  EXPECT_EQ(Quota(), std::nullopt);
  Write(folder + "/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(Quota(), std::nullopt) << "without a period";
  Write(folder + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2.0);
  Write(folder + "/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Quota(), std::nullopt);
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "25000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(CgroupTest, QuotasThatAreNoneSetNoLimit) {
  WriteProc("0::/a\n", Version2Mount());
  for (const auto* garbage : {"", "\n", "100000", "max", "x 100000", "100000 x", "100000 0",
                              "-1 100000", "100000  100000", "1.5 1", "100000 100000 1"}) {
    Write("/sys/fs/cgroup/a/cpu.max", garbage);
    EXPECT_EQ(Quota(), std::nullopt) << garbage;
  }
  Write("/sys/fs/cgroup/a/cpu.max", "0 100000");
  EXPECT_EQ(Quota(), 0.0);
}

// Two nested control groups of this machine, which no process joins.
class RealGroups {
 public:
  RealGroups() {
    const std::string name = Format("cria_test_{}", getpid());
    for (const bool unified : {false, true}) {
      const std::string mount = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
      limit_file_ = unified ? "memory.max" : "memory.limit_in_bytes";
      if (!unified && !std::filesystem::exists(mount + "/memory.limit_in_bytes")) continue;
      outer_ = mount + "/" + name;
      std::error_code error;
      if (!std::filesystem::create_directory(outer_, error)) continue;
      if (unified) std::ofstream(outer_ + "/cgroup.subtree_control") << "+memory";
      std::filesystem::create_directory(outer_ + "/inner", error);
      membership_ = Format("{}:/{}/inner\n", unified ? "0:" : "4:memory", name);
      usable_ = std::filesystem::exists(outer_ + "/inner/" + limit_file_, error);
      if (usable_) return;
      Remove();
    }
  }
  RealGroups(const RealGroups&) = delete;
  RealGroups& operator=(const RealGroups&) = delete;
  ~RealGroups() { Remove(); }

  bool usable() const { return usable_; }
  // As the inner group's processes would read it in /proc/self/cgroup.
  const std::string& membership() const { return membership_; }

  void Limit(const std::string& group, uint64_t bytes) const {
    std::ofstream file(outer_ + group + "/" + limit_file_);
    file << bytes << std::flush;
    ASSERT_TRUE(file) << outer_ << group;
  }

 private:
  void Remove() const {
    rmdir((outer_ + "/inner").c_str());
    rmdir(outer_.c_str());
  }

  std::string outer_;
  std::string limit_file_;
  std::string membership_;
  bool usable_ = false;
};

TEST_F(CgroupTest, ReadsWhatTheKernelWrites) {
  const RealGroups groups;
  if (!groups.usable()) GTEST_SKIP() << "no control groups for memory that the tests may make";
  Write("/proc/self/cgroup", groups.membership());
  std::filesystem::create_symlink("/proc/self/mountinfo", root_ + "/proc/self/mountinfo");
  std::filesystem::create_symlink("/sys", root_ + "/sys");
  EXPECT_EQ(Limit(), std::nullopt);
  groups.Limit("/inner", 96 * kMebibyte);
  EXPECT_EQ(Limit(), 96 * kMebibyte);
  groups.Limit("", 64 * kMebibyte);
  EXPECT_EQ(Limit(), 64 * kMebibyte);
}

}  // namespace
}  // namespace cria::platform
