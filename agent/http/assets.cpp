#include "agent/http/assets.h"

#include <algorithm>
#include <map>

#include "agent/http/live_assets.h"

namespace spillway::agent {
namespace {

// No code or style from elsewhere, none within the document, and no frame around it.
constexpr char kPolicy[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

const char* TypeOf(std::string_view path) {
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

std::map<std::string, HttpAnswer, std::less<>> AllAssets() {
  std::map<std::string, HttpAnswer, std::less<>> all;
  for (const LiveAsset& asset : LiveAssets())
    all[asset.path] = {200, TypeOf(asset.path), TextPage(asset.text), kPolicy};
  return all;
}

}  // namespace

std::optional<HttpAnswer> AssetAt(std::string_view path) {
  static const auto all = AllAssets();
  const auto found = all.find(path);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace spillway::agent
