#include "cli/frameworks.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/scratch_folder.h"

namespace spillway::cli {
namespace {

using testing::Test;

class FrameworksTest : public Test {
 protected:
  void SetUp() override {
    unsetenv("PYTORCH_ALLOC_CONF");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("PYTHONPATH");
    setenv("HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override { SetUp(); }

  std::string WriteVersion(const std::string& packages, const std::string& version) const {
    return folder_.Write(
        packages + "/torch/version.py",
        "from typing import Optional\n__version__ = '" + version + "'\ncuda = None\n");
  }

  test::ScratchFolder folder_;
};

TEST_F(FrameworksTest, FindsPyTorchInAVirtualEnvironment) {
  const std::string python = folder_.Write("venv/bin/python3.11", "", 0755);
  EXPECT_EQ(PyTorchVersion(python), std::nullopt);
  WriteVersion("venv/lib/python3.11/site-packages", "2.12.1+cu130");
  EXPECT_EQ(PyTorchVersion(python), "2.12.1+cu130");
  const std::string script =
      folder_.Write("venv/bin/torchrun", "#!" + python + "\nimport sys\n", 0755);
  EXPECT_EQ(PyTorchVersion(script), "2.12.1+cu130");
  EXPECT_EQ(PyTorchVersion(folder_.Write("trainer",
                                         "\x7f"
                                         "ELF",
                                         0755)),
            std::nullopt);
  EXPECT_EQ(PyTorchVersion(folder_.Write("run.sh", "#!/bin/sh\n", 0755)), std::nullopt);
}

TEST_F(FrameworksTest, ScriptOfEnvTakesThePythonInPath) {
  folder_.Write("venv/bin/python3", "", 0755);
  WriteVersion("venv/lib/python3.12/site-packages", "2.9.0");
  const std::string script = folder_.Write("train.py", "#!/usr/bin/env python3\n", 0755);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_.path() + "/venv/bin").c_str(), 1);
  EXPECT_EQ(PyTorchVersion(script), "2.9.0");
  setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(PyTorchVersion(script), std::nullopt);
  setenv("PATH", path.c_str(), 1);
}

TEST_F(FrameworksTest, PythonpathComesFirst) {
  const std::string python = folder_.Write("venv/bin/python", "", 0755);
  WriteVersion("venv/lib/python3.11/site-packages", "2.1.0");
  WriteVersion("own", "2.2.0");
  setenv("PYTHONPATH", ("/nowhere:" + folder_.path() + "/own").c_str(), 1);
  EXPECT_EQ(PyTorchVersion(python), "2.2.0");
}

TEST_F(FrameworksTest, EitherVariableOfTheUserKeepsBoth) {
  EnvironmentChanges none;
  SwitchFrameworks(none);
  EXPECT_EQ(none.changes().at("PYTORCH_ALLOC_CONF"), "backend:cudaMallocAsync");
  EXPECT_EQ(none.changes().at("PYTORCH_CUDA_ALLOC_CONF"), "backend:cudaMallocAsync");
  setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
  EnvironmentChanges own;
  SwitchFrameworks(own);
  EXPECT_FALSE(own.changes().contains("PYTORCH_ALLOC_CONF"));
  EXPECT_FALSE(own.changes().contains("PYTORCH_CUDA_ALLOC_CONF"));
  setenv("PYTORCH_CUDA_ALLOC_CONF", "", 1);
  EnvironmentChanges empty;
  SwitchFrameworks(empty);
  EXPECT_FALSE(empty.changes().contains("PYTORCH_ALLOC_CONF")) << "set, though to nothing";
}

TEST_F(FrameworksTest, SaysWhatTheUsersSettingMeans) {
  EXPECT_EQ(DescribePyTorch("2.9.0+cpu", true), "");
  EXPECT_NE(DescribePyTorch("2.9.0", true).find("PYTORCH_ALLOC_CONF=backend:cudaMallocAsync"),
            std::string::npos);
  EXPECT_EQ(DescribePyTorch("2.9.0", false),
            "PyTorch 2.9.0: tensors move with their segments, not alone");
  setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
  EXPECT_EQ(DescribePyTorch("2.9.0", true),
            "PyTorch 2.9.0: your PYTORCH_ALLOC_CONF=expandable_segments:True stays; memory of "
            "expandable segments moves only between the job's turns");
}

}  // namespace
}  // namespace spillway::cli
