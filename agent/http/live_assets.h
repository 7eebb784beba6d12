// The files of the live page as texts; the build writes live_assets.cpp (live_assets.cmake).
#pragma once

#include <string>
#include <vector>

namespace spillway::agent {

struct LiveAsset {
  std::string path;  // of its address: "/", "/live.js"
  std::string text;
};

std::vector<LiveAsset> LiveAssets();

}  // namespace spillway::agent
